"""People: how owners want to be reached, and how messages reach them.

It adds the senders of each channel, the handler of deliveries, contacts and preferences, the links in
mails, feeds, and the export and the deletion of all that is stored of a person.
"""
