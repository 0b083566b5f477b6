// The extension starts `trainvet lsp`, shows how it is doing, and opens what its commands say. Everything else is the server's.
import * as vscode from "vscode";
import { LanguageClient, LanguageClientOptions, ServerOptions, State, Trace } from "vscode-languageclient/node";

const languages = ["python", "json", "jsonc", "yaml", "toml", "shellscript"];
const scheme = "trainvet";

let client: LanguageClient | undefined;
let status: vscode.LanguageStatusItem;
let log: vscode.LogOutputChannel;
// One thing at a time: a restart while the server starts would leave two of them.
let queue: Promise<void> = Promise.resolve();

/** Reports are texts of the server, shown as Markdown; the query of their URI says which. */
class Reports implements vscode.TextDocumentContentProvider {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  async show(title: string, text: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme, path: `/${title}.md` });
    this.texts.set(uri.toString(), text);
    this.changed.fire(uri);
    await vscode.commands.executeCommand("markdown.showPreview", uri);
  }
}

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  log = vscode.window.createOutputChannel("trainvet", { log: true });
  status = vscode.languages.createLanguageStatusItem("trainvet", languages.map((language) => ({ language })));
  status.name = "trainvet";
  status.command = { title: "Show Log", command: "trainvet.showLog" };
  const reports = new Reports();
  context.subscriptions.push(
    log,
    status,
    vscode.workspace.registerTextDocumentContentProvider(scheme, reports),
    vscode.commands.registerCommand("trainvet.showMemory", (uri?: string) => report(reports, "trainvet.fit", "memory", uri)),
    vscode.commands.registerCommand("trainvet.showPlan", (uri?: string) => report(reports, "trainvet.plan", "plan", uri)),
    vscode.commands.registerCommand("trainvet.restart", restart),
    vscode.commands.registerCommand("trainvet.showLog", () => log.show()),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (["enable", "path", "arguments"].some((name) => event.affectsConfiguration(`trainvet.${name}`))) {
        void restart();
      } else if (event.affectsConfiguration("trainvet.trace.server")) {
        void trace();
      }
    }),
  );
  await restart();
}

export async function deactivate(): Promise<void> {
  await stop();
}

function restart(): Promise<void> {
  queue = queue.then(stop).then(start);
  return queue;
}

async function stop(): Promise<void> {
  const old = client;
  client = undefined;
  await old?.dispose().catch((reason: unknown) => log.warn(String(reason)));
}

async function start(): Promise<void> {
  const settings = vscode.workspace.getConfiguration("trainvet");
  if (!settings.get<boolean>("enable", true)) {
    tell("off", vscode.LanguageStatusSeverity.Information);
    return;
  }
  const command = settings.get<string>("path", "trainvet");
  const server: ServerOptions = { command, args: ["lsp", ...settings.get<string[]>("arguments", [])] };
  const options: LanguageClientOptions = {
    documentSelector: [
      ...languages.flatMap((language) => [{ scheme: "file", language }, { scheme: "untitled", language }]),
      { notebook: { notebookType: "jupyter-notebook" }, language: "python" },
    ],
    initializationOptions: { commands: ["trainvet.showMemory"] },
    outputChannel: log,
  };
  const next = new LanguageClient("trainvet", "trainvet", server, options);
  next.onDidChangeState(({ newState }) => {
    if (client === next) {
      tell(newState === State.Running ? "running" : newState === State.Starting ? "starting" : "stopped",
        newState === State.Stopped ? vscode.LanguageStatusSeverity.Error : vscode.LanguageStatusSeverity.Information);
    }
  });
  client = next;
  tell("starting", vscode.LanguageStatusSeverity.Information);
  try {
    await next.start();
    await trace();
  } catch (reason) {
    log.error(String(reason));
    tell("did not start", vscode.LanguageStatusSeverity.Error);
    const answer = await vscode.window.showErrorMessage(`trainvet: ${command} did not start. Is it installed? The setting trainvet.path says where.`, "Settings", "Log");
    if (answer === "Settings") {
      await vscode.commands.executeCommand("workbench.action.openSettings", "trainvet.path");
    } else if (answer === "Log") {
      log.show();
    }
  }
}

async function trace(): Promise<void> {
  await client?.setTrace(Trace.fromString(vscode.workspace.getConfiguration("trainvet").get<string>("trace.server", "off")));
}

function tell(text: string, severity: vscode.LanguageStatusSeverity): void {
  const version = client?.initializeResult?.serverInfo?.version;
  status.text = version && text === "running" ? `trainvet ${version}` : `trainvet: ${text}`;
  status.severity = severity;
}

/** Asks the server about a document, by default the one that is shown, and opens what it says. */
async function report(reports: Reports, command: string, what: string, given?: string): Promise<void> {
  const uri = given ?? vscode.window.activeTextEditor?.document.uri.toString();
  if (!uri || !client?.isRunning()) {
    await vscode.window.showInformationMessage(uri ? "trainvet is not running." : "Open a config or a training script first.");
    return;
  }
  try {
    const text = await client.sendRequest<string>("workspace/executeCommand", { command, arguments: [client.code2ProtocolConverter.asUri(vscode.Uri.parse(uri))] });
    await reports.show(`${what} of ${vscode.Uri.parse(uri).path.split("/").pop()}`, text);
  } catch (reason) {
    log.error(String(reason));
    await vscode.window.showErrorMessage(`trainvet: ${String(reason)}`);
  }
}
