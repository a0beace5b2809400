// The Node clients against a running emulator: node node_clients.mjs HOST:PORT TARGET_URL
// Needs @google-cloud/tasks and firebase-admin beside it or in NODE_PATH's parent; test_node.py runs it.
import assert from 'node:assert/strict';
import {createRequire} from 'node:module';

const require = createRequire(`${process.env.CLOUDSCHED_NODE_MODULES}/`);
const grpc = require('@grpc/grpc-js');
const {GoogleAuth, PassThroughClient} = require('google-auth-library');
const {CloudTasksClient} = require('@google-cloud/tasks').v2;
const {initializeApp} = require('firebase-admin/app');
const {getFunctions} = require('firebase-admin/functions');

const [address, target] = process.argv.slice(2);
const [servicePath, port] = address.split(':');
const shared = {servicePath, port: Number(port), projectId: 'demo'};
const auth = new GoogleAuth({authClient: new PassThroughClient()});

for (const [queue, options] of [
  ['node-grpc', {sslCreds: grpc.credentials.createInsecure()}],
  ['node-rest', {fallback: true, protocol: 'http', auth}],
]) {
  const client = new CloudTasksClient({...shared, ...options});
  const parent = client.locationPath('demo', 'us-central1');
  const name = client.queuePath('demo', 'us-central1', queue);
  const [made] = await client.createQueue({parent, queue: {name}});
  assert.equal(made.rateLimits.maxDispatchesPerSecond, 500);
  const body = Buffer.from('hi').toString('base64');
  const httpRequest = {url: `${target}/${queue}`, httpMethod: 'POST', body};
  const [task] = await client.createTask({parent: name, task: {httpRequest, scheduleTime: {seconds: 1798848000}}});
  const [[listed]] = await client.listTasks({parent: name, responseView: 'FULL'});
  assert.equal(listed.name, task.name);
  assert.equal(Buffer.from(listed.httpRequest.body).toString(), 'hi');
  const updateMask = {paths: ['retry_config.max_attempts']};
  const [changed] = await client.updateQueue({queue: {name, retryConfig: {maxAttempts: 3}}, updateMask});
  assert.equal(changed.retryConfig.maxAttempts, 3);
  await assert.rejects(client.createTask({parent: `${name}x`, task: {httpRequest}}), /Queue does not exist/);
  await client.close();
}

process.env.CLOUD_TASKS_EMULATOR_HOST = address;
const functions = getFunctions(initializeApp({projectId: 'demo'})).taskQueue('default');
await functions.enqueue({a: 1}, {id: 'mine', uri: `${target}/firebase`, scheduleTime: new Date('2027-01-02')});
await assert.rejects(functions.enqueue({a: 1}, {id: 'mine'}), {code: 'functions/task-already-exists'});
await functions.enqueue({a: 1}, {id: 'other', scheduleTime: new Date('2027-01-02')});
await functions.delete('other');
process.exit(0);
