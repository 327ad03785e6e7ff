// A judge for the tests: answers what the Vercel AI SDK says of histories.
//
// Usage: node ai_sdk.mjs DIRECTORY PACKAGE, where the directory has node_modules. Reads one JSON
// request a line from stdin: {kind, messages}. Writes one JSON answer a line: {ok, prompt} or
// {ok: false, error, message}. Kinds:
//   model     modelMessageSchema for each message, then generateText with a model that answers "ok"
//   ui        validateUIMessages, then convertToModelMessages, then the same
//   convert   convertToModelMessages alone; the messages are in `messages` of the answer

import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [directory, name] = process.argv.slice(2);
const require = createRequire(`${directory}/package.json`);
const load = async path => import(pathToFileURL(require.resolve(path)).href);
const ai = await load(name);
const { z } = await load('zod');
console.warn = console.info = () => {};
globalThis.AI_SDK_LOG_WARNINGS = false;

function modelThatRemembers(prompts) {
  return {
    specificationVersion: 'v3',
    provider: 'test',
    modelId: 'test',
    supportedUrls: {},
    async doGenerate({ prompt }) {
      prompts.push(prompt);
      return {
        content: [{ type: 'text', text: 'ok' }],
        finishReason: { unified: 'stop', raw: 'stop' },
        usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
        warnings: [],
      };
    },
  };
}

function toolsNamedIn(messages, executed) {
  const names = new Set();
  for (const message of messages) {
    for (const part of Array.isArray(message.content) ? message.content : []) {
      if (part?.type === 'tool-call') names.add(part.toolName);
    }
  }
  const tool = name => ({
    inputSchema: z.any(),
    needsApproval: true,
    execute: async () => {
      executed.push(name);
      return 'it ran';
    },
  });
  return Object.fromEntries([...names].map(name => [name, tool(name)]));
}

async function generate(messages) {
  for (const message of messages) ai.modelMessageSchema.parse(message);
  const prompts = [];
  const executed = [];
  const tools = toolsNamedIn(messages, executed);
  await ai.generateText({ model: modelThatRemembers(prompts), messages, tools, maxRetries: 0 });
  return { ok: true, prompt: prompts[0], executed };
}

const kinds = {
  model: generate,
  async ui(messages) {
    return generate(await ai.convertToModelMessages(await ai.validateUIMessages({ messages })));
  },
  async convert(messages) {
    return { ok: true, messages: await ai.convertToModelMessages(messages) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { kind, messages } = JSON.parse(line);
  let answer;
  try {
    answer = await kinds[kind](messages);
  } catch (error) {
    answer = { ok: false, error: error.name, message: error.message };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
