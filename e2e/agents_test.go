//go:build e2e

package e2e

import (
	_ "embed"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

//go:embed clis.txt
var clis string

// agent is one real CLI: where it comes from, what a fresh home must hold so that it neither asks
// nor calls anybody but the mock, and how it shows what it does.
type agent struct {
	program, integration string
	pkg, version         string
	// env and seed make a home in which it starts at once, talks to the model server at url, and
	// trusts dirs. dot is where the seed of its configuration goes: the home, or, for another
	// configuration directory, that.
	env  func(home, url string) map[string]string
	seed func(t testing.TB, home, url string, dirs []string)
	// ready is on the screen while it takes a prompt.
	ready *regexp.Regexp
	// clear is its own command for a new conversation in the same process; "" for none.
	clear string
	// asks are the questions that it puts before its prompt, each with the key of a person who
	// has installed the hooks and wants them.
	asks []question
	// lazy: it mints its own id, which is proven only by looking.
	lazy bool
	// blind: a running process does not show which of its conversations is the open one, so its
	// /clear is not seen at save.
	blind bool
	// survives: its processes outlive the hangup of their terminal.
	survives bool
	// kept are the files below the home that a turn is in a moment after its answer shows; empty
	// where it is there by then. An end in between takes the turn along, and not the conversation.
	kept string
	// headless runs one turn without a terminal.
	headless []string
	// leave ends it; empty: /exit.
	leave string
	// bang is typed before a command that its interface is to run in a shell; empty where it has
	// no such way. Where it is modal, its prompt takes commands until Escape.
	bang  string
	modal bool
}

type question struct {
	screen *regexp.Regexp
	key    string
}

func claude() *agent {
	return &agent{
		program: "claude", integration: "claude-code",
		ready: regexp.MustCompile(`(?m)^\s*❯`), clear: "/clear", headless: []string{"claude", "-p"}, bang: "!",
		env: func(home, url string) map[string]string {
			return map[string]string{
				"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": claudeKey,
				"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "DISABLE_TELEMETRY": "1",
			}
		},
		seed: func(t testing.TB, home, _ string, dirs []string) { seedClaude(t, home, dirs) },
	}
}

const claudeKey = "sk-ant-mock-0000000000000000000000"

// seedClaude writes .claude.json into dir: the home, or a CLAUDE_CONFIG_DIR.
func seedClaude(t testing.TB, dir string, dirs []string) {
	projects := map[string]any{}
	for _, d := range dirs {
		projects[d] = map[string]any{"hasTrustDialogAccepted": true, "hasCompletedProjectOnboarding": true}
	}
	writeJSON(t, filepath.Join(dir, ".claude.json"), map[string]any{
		"hasCompletedOnboarding": true, "lastOnboardingVersion": "99.0.0", "theme": "dark",
		"customApiKeyResponses": map[string]any{"approved": []string{claudeKey[len(claudeKey)-20:]}, "rejected": []string{}},
		"projects":              projects,
	})
}

func codex() *agent {
	return &agent{
		program: "codex", integration: "codex",
		ready: regexp.MustCompile(`(?m)^\s*› [^0-9]`), clear: "/clear", lazy: true, blind: true,
		headless: []string{"codex", "exec", "--skip-git-repo-check"}, bang: "!",
		asks: []question{
			{regexp.MustCompile(`› 1\. Review hooks`), "Down"},
			{regexp.MustCompile(`› 2\. Trust all and continue`), "Enter"},
		},
		env: func(home, url string) map[string]string {
			return map[string]string{"CODEX_HOME": filepath.Join(home, ".codex"), "MOCK_KEY": "mock"}
		},
		seed: func(t testing.TB, home, url string, dirs []string) {
			var b strings.Builder
			b.WriteString("model = \"gpt-5.1-codex\"\nmodel_provider = \"mock\"\ncheck_for_update_on_startup = false\n" +
				"[analytics]\nenabled = false\n[model_providers.mock]\nname = \"mock\"\nbase_url = \"" + url + "/v1\"\n" +
				"env_key = \"MOCK_KEY\"\nwire_api = \"responses\"\n")
			for _, d := range dirs {
				b.WriteString("[projects.'" + d + "']\ntrust_level = \"trusted\"\n")
			}
			write(t, filepath.Join(home, ".codex", "config.toml"), b.String())
		},
	}
}

func gemini() *agent {
	return &agent{
		program: "gemini", integration: "gemini-cli",
		ready: regexp.MustCompile(`Type your message`), clear: "/clear", blind: true, survives: true,
		headless: []string{"gemini", "-p"}, leave: "/quit", bang: "!", modal: true,
		env: func(home, url string) map[string]string {
			return map[string]string{"GEMINI_API_KEY": "mock", "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_TELEMETRY_ENABLED": "false"}
		},
		seed: func(t testing.TB, home, _ string, dirs []string) { seedGemini(t, home, dirs, false) },
	}
}

// seedGemini writes gemini's settings, with its clean-up of old conversations on or off.
func seedGemini(t testing.TB, home string, dirs []string, retention bool) {
	trusted := map[string]string{}
	for _, d := range dirs {
		trusted[d] = "TRUST_FOLDER"
	}
	writeJSON(t, filepath.Join(home, ".gemini", "trustedFolders.json"), trusted)
	writeJSON(t, filepath.Join(home, ".gemini", "settings.json"), map[string]any{
		"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}, "folderTrust": map[string]any{"enabled": true}},
		"general": map[string]any{
			"disableAutoUpdate": true, "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
			"sessionRetention": map[string]any{"enabled": retention},
		},
		"privacy": map[string]any{"usageStatisticsEnabled": false},
		"ui":      map[string]any{"hideTips": true, "theme": "Default"},
	})
}

func opencode() *agent {
	return &agent{
		program: "opencode", integration: "opencode",
		ready: regexp.MustCompile(`Ask anything|ctrl\+p|commands`), clear: "/new", blind: true,
		headless: []string{"opencode", "run"}, bang: "!",
		env: func(home, url string) map[string]string {
			return map[string]string{
				"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
				"OPENCODE_DISABLE_LSP_DOWNLOAD": "1", "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
			}
		},
		seed: func(t testing.TB, home, url string, _ []string) {
			writeJSON(t, filepath.Join(home, ".config", "opencode", "opencode.json"), map[string]any{
				"$schema": "https://opencode.ai/config.json", "autoupdate": false, "share": "disabled",
				"model": "mock/mock-model", "small_model": "mock/mock-model",
				"provider": map[string]any{"mock": map[string]any{
					"npm": "@ai-sdk/openai-compatible", "name": "Mock",
					"options": map[string]any{"baseURL": url + "/v1", "apiKey": "mock"},
					"models":  map[string]any{"mock-model": map[string]any{"name": "Mock", "limit": map[string]any{"context": 100000, "output": 4096}}},
				}},
			})
		},
	}
}

func qwen() *agent {
	return &agent{
		program: "qwen", integration: "qwen-code",
		ready: regexp.MustCompile(`Type your message`), clear: "/clear", headless: []string{"qwen", "-p"}, leave: "/quit", bang: "!", modal: true,
		kept: ".qwen/projects/*/chats/*.jsonl",
		env: func(home, url string) map[string]string {
			return map[string]string{"OPENAI_API_KEY": "mock", "OPENAI_BASE_URL": url + "/v1", "OPENAI_MODEL": "mock-model"}
		},
		seed: func(t testing.TB, home, _ string, _ []string) {
			writeJSON(t, filepath.Join(home, ".qwen", "settings.json"), map[string]any{
				"security": map[string]any{"auth": map[string]any{"selectedType": "openai"}},
				"general":  map[string]any{"enableAutoUpdate": false, "disableAutoUpdate": true},
				"privacy":  map[string]any{"usageStatisticsEnabled": false},
			})
		},
	}
}

func copilot() *agent {
	return &agent{
		program: "copilot", integration: "copilot",
		ready: regexp.MustCompile(`(?m)^\s*[❯>]`), clear: "/clear", headless: []string{"copilot", "-p"},
		env: func(home, url string) map[string]string {
			return map[string]string{
				"COPILOT_OFFLINE": "true", "COPILOT_AUTO_UPDATE": "false", "COPILOT_MODEL": "gpt-4.1",
				"COPILOT_PROVIDER_BASE_URL": url + "/v1", "COPILOT_PROVIDER_API_KEY": "mock",
			}
		},
		seed: func(t testing.TB, home, _ string, dirs []string) {
			writeJSON(t, filepath.Join(home, ".copilot", "config.json"), map[string]any{"trustedFolders": dirs, "trusted_folders": dirs})
		},
	}
}

func pi() *agent {
	return &agent{
		program: "pi", integration: "pi",
		ready: regexp.MustCompile(`mock-model`), clear: "/new", blind: true, headless: []string{"pi", "-p"}, leave: "/quit", bang: "!",
		env: func(home, url string) map[string]string {
			return map[string]string{"PI_OFFLINE": "1", "PI_TELEMETRY": "0"}
		},
		seed: func(t testing.TB, home, url string, _ []string) {
			dir := filepath.Join(home, ".pi", "agent")
			writeJSON(t, filepath.Join(dir, "models.json"), map[string]any{"providers": map[string]any{"mock": map[string]any{
				"baseUrl": url + "/v1", "api": "openai-completions", "apiKey": "mock",
				"models": []any{map[string]any{
					"id": "mock-model", "name": "Mock", "reasoning": false, "input": []string{"text"},
					"cost":          map[string]any{"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0},
					"contextWindow": 100000, "maxTokens": 4096,
				}},
			}}})
			writeJSON(t, filepath.Join(dir, "settings.json"), map[string]any{"defaultProvider": "mock", "defaultModel": "mock-model", "quietStartup": true})
		},
	}
}

// kimi makes its session at the first message, and only its hook tells which one that is.
func kimi() *agent {
	return &agent{
		program: "kimi", integration: "kimi", lazy: true, blind: true,
		ready: regexp.MustCompile(`(?m)│ > `), clear: "/new", headless: []string{"kimi", "-p"},
		asks: []question{{regexp.MustCompile(`Trust this folder\?`), "Enter"}},
		env: func(home, url string) map[string]string {
			return map[string]string{"KIMI_DISABLE_TELEMETRY": "1", "KIMI_CLI_NO_AUTO_UPDATE": "1"}
		},
		seed: func(t testing.TB, home, url string, _ []string) {
			write(t, filepath.Join(home, ".kimi-code", "config.toml"), "default_model = \"mock\"\ntelemetry = false\n[providers.mock]\ntype = \"openai\"\nbase_url = \""+
				url+"/v1\"\napi_key = \"mock\"\n[models.mock]\nprovider = \"mock\"\nmodel = \"mock-model\"\nmax_context_size = 100000\n")
		},
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func writeJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, string(b))
}
