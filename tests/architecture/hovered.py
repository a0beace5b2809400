"""Code as users write it, whose hover texts and signatures an editor shows. Nothing runs it."""

from datetime import timedelta

from pydantic import BaseModel

from cloudsched import App, AsyncContext, Context, Depends, Schedule, asgi
from cloudsched.client import AsyncClient, Client

app = App()


class Reminder(BaseModel):
    """A payload."""

    text: str


@app.handler("remind", retry=2)
def remind(ctx: Context, reminder: Reminder) -> int:
    """Remind somebody of something."""
    ctx.step("a", len, "x")
    ctx.wait_for("b")
    return len(reminder.text)


@app.scheduled("every day at 9")
async def report(ctx: AsyncContext) -> str:
    """Report what happened."""
    await ctx.sleep(timedelta(days=1))
    return "x"


remind.create(payload=Reminder(text="a"), schedule=Schedule.every(timedelta(days=1)))
remind.run_now(Reminder(text="a"))
app.create(owner="ada")
service = asgi(app)
marker = Depends(len)
Client("http://x").create(owner="ada")
pending = AsyncClient("http://x").create(owner="ada")
