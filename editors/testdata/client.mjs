// A session with the client library of VS Code's makers: what it decodes is what the protocol says.
// Called as `node client.mjs PROGRAM FOLDER`, with vscode-languageserver-protocol in NODE_PATH's folder.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const require = createRequire(join(process.env.TRAINVET_MODULES, "x.js"));
const lsp = require("vscode-languageserver-protocol/node");
const [program, folder] = process.argv.slice(2);
const child = spawn(program, ["lsp", "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const connection = lsp.createProtocolConnection(new lsp.StreamMessageReader(child.stdout), new lsp.StreamMessageWriter(child.stdin));
const registered = [];
let refreshed, watched;
const refresh = new Promise((resolve) => { refreshed = resolve; });
const registration = new Promise((resolve) => { watched = resolve; });
connection.onRequest(lsp.RegistrationRequest.type, (params) => { registered.push(...params.registrations.map((one) => one.method)); watched(); });
connection.onRequest(lsp.DiagnosticRefreshRequest.type, () => { refreshed(); });
connection.onNotification(lsp.PublishDiagnosticsNotification.type, () => { throw new Error("pushed to a client that pulls"); });
connection.onRequest(lsp.WorkDoneProgressCreateRequest.type, () => {});
connection.listen();

const uri = (name) => pathToFileURL(join(folder, name)).toString();
const text = (name) => readFileSync(join(folder, name), "utf8");
const say = (what, value) => console.log(what, JSON.stringify(value));

const initialized = await connection.sendRequest(lsp.InitializeRequest.type, {
  processId: process.pid, rootUri: null, workspaceFolders: [{ uri: pathToFileURL(folder).toString(), name: "w" }],
  capabilities: {
    general: { positionEncodings: ["utf-16"] },
    window: { workDoneProgress: true },
    workspace: { workspaceEdit: { documentChanges: true }, diagnostics: { refreshSupport: true }, didChangeWatchedFiles: { dynamicRegistration: true } },
    textDocument: { diagnostic: {}, hover: { contentFormat: ["markdown"] }, documentSymbol: { hierarchicalDocumentSymbolSupport: true } },
  },
});
say("encoding", initialized.capabilities.positionEncoding);
await connection.sendNotification(lsp.InitializedNotification.type, {});
for (const [name, languageId] of [["model.py", "python"], ["args.yaml", "yaml"]]) {
  await connection.sendNotification(lsp.DidOpenTextDocumentNotification.type, { textDocument: { uri: uri(name), languageId, version: 1, text: text(name) } });
}
const pulled = await connection.sendRequest(lsp.DocumentDiagnosticRequest.type, { textDocument: { uri: uri("model.py") } });
say("pulled", [pulled.kind, pulled.items.map((one) => one.code)]);
const again = await connection.sendRequest(lsp.DocumentDiagnosticRequest.type, { textDocument: { uri: uri("model.py") }, previousResultId: pulled.resultId });
say("again", again.kind);
const all = await connection.sendRequest(lsp.WorkspaceDiagnosticRequest.type, { previousResultIds: [] });
say("workspace", all.items.map((item) => [item.uri.split("/").pop(), item.items.some((one) => one.code === "checkpoint-embedding")]).sort());
const range = pulled.items[0].range;
const actions = await connection.sendRequest(lsp.CodeActionRequest.type, { textDocument: { uri: uri("model.py") }, range, context: { diagnostics: [], only: [lsp.CodeActionKind.QuickFix] } });
say("actions", actions.map((one) => one.title));
const hover = await connection.sendRequest(lsp.HoverRequest.type, { textDocument: { uri: uri("args.yaml") }, position: { line: 0, character: 3 } });
say("hover", [hover.contents.kind, hover.contents.value.includes("micro-batch")]);
const hints = await connection.sendRequest(lsp.InlayHintRequest.type, { textDocument: { uri: uri("args.yaml") }, range: { start: { line: 0, character: 0 }, end: { line: 9, character: 0 } } });
say("hints", hints.map((one) => one.label).filter((label) => label.startsWith("global batch") || label.startsWith("a string")));
const symbols = await connection.sendRequest(lsp.DocumentSymbolRequest.type, { textDocument: { uri: uri("args.yaml") } });
say("symbols", symbols.map((one) => one.name));
const completion = await connection.sendRequest(lsp.CompletionRequest.type, { textDocument: { uri: uri("args.yaml") }, position: { line: 3, character: 6 } });
say("completion", completion.items.map((one) => one.label));
await connection.sendNotification(lsp.DidChangeWatchedFilesNotification.type, { changes: [{ uri: uri("trainvet.toml"), type: lsp.FileChangeType.Changed }] });
await refresh;
await registration;
say("registered", registered);
await connection.sendRequest(lsp.ShutdownRequest.type);
const ended = new Promise((resolve) => child.on("exit", resolve));
await connection.sendNotification(lsp.ExitNotification.type);
say("exit", await ended);
connection.dispose();
