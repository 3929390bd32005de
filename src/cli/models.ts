/** The model that a command names. Providers' packages are optional and loaded only when they are asked for. */
import type { Model } from "../model/model.ts";
import { OfflineModel } from "../model/offline.ts";
import { CommandError, UsageError } from "./errors.ts";

export interface ModelOptions {
  model?: string;
  baseUrl?: string;
}

interface Provider {
  package: string;
  load(modelId: string, baseUrl: string | undefined): Promise<Model>;
}

const PROVIDERS: Record<string, Provider> = {
  anthropic: {
    package: "@ai-sdk/anthropic",
    async load(modelId, baseUrl) {
      const { createAnthropic } = await import("@ai-sdk/anthropic");
      const apiKey = key("ANTHROPIC_API_KEY");
      const url = baseUrl ?? process.env.ANTHROPIC_BASE_URL;
      return await adapt(createAnthropic({ apiKey, ...(url ? { baseURL: versioned(url) } : {}) })(modelId));
    },
  },
  openai: {
    package: "@ai-sdk/openai",
    async load(modelId, baseUrl) {
      const { createOpenAI } = await import("@ai-sdk/openai");
      const apiKey = key("OPENAI_API_KEY");
      return await adapt(createOpenAI({ apiKey, ...(baseUrl ? { baseURL: baseUrl } : {}) })(modelId));
    },
  },
  "openai-compatible": {
    package: "@ai-sdk/openai-compatible",
    async load(modelId, baseUrl) {
      if (!baseUrl) throw new UsageError("An openai-compatible model needs --base-url <url>, where its API is.");
      const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
      // Local servers ask for no key.
      const apiKey = process.env.OPENAI_COMPATIBLE_API_KEY;
      const settings = { name: "openai-compatible", baseURL: baseUrl, includeUsage: true };
      return await adapt(createOpenAICompatible({ ...settings, ...(apiKey ? { apiKey } : {}) })(modelId));
    },
  },
};

/** How the model is called that a command uses: --model, else EVERTHREAD_MODEL, else "offline". */
export function modelName(options: ModelOptions): string {
  return options.model ?? (process.env.EVERTHREAD_MODEL || "offline");
}

/**
 * @throws UsageError for a name that is none
 * @throws CommandError "package_missing" saying what to install, "key_missing" saying which variable to set
 */
export async function loadModel(options: ModelOptions): Promise<Model> {
  const name = modelName(options);
  if (name === "offline") return new OfflineModel();
  const [, kind = "", modelId = ""] = /^([^:]*):(.+)$/.exec(name) ?? [];
  const provider = Object.hasOwn(PROVIDERS, kind) ? PROVIDERS[kind] : undefined;
  if (!provider) {
    const known = Object.keys(PROVIDERS).map((known) => `${known}:<id>`);
    throw new UsageError(`There is no model ${JSON.stringify(name)}: give offline, ${known.join(" or ")}.`);
  }
  if (options.baseUrl !== undefined && !URL.canParse(options.baseUrl)) {
    throw new UsageError(
      `--base-url takes a URL such as http://localhost:8080/v1, not ${JSON.stringify(options.baseUrl)}.`,
    );
  }
  try {
    return await provider.load(modelId, options.baseUrl);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new CommandError(
      "package_missing",
      `The model ${name} needs a package that is not installed: npm install ${provider.package}`,
      { cause: error },
    );
  }
}

async function adapt(languageModel: Parameters<typeof import("../model/ai-sdk.ts").aiSdkModel>[0]): Promise<Model> {
  const { aiSdkModel } = await import("../model/ai-sdk.ts");
  return aiSdkModel(languageModel);
}

function key(variable: string): string {
  const value = process.env[variable];
  if (!value) throw new CommandError("key_missing", `Set ${variable} to your key for this model.`);
  return value;
}

/** Anthropic's own programs take the URL without its version, and this package with it. */
function versioned(url: string): string {
  return URL.canParse(url) && new URL(url).pathname === "/" ? new URL("/v1", url).href : url;
}
