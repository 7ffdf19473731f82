package embedded

import (
	"fmt"
	"go/ast"
	source "go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
)

// constants are the integer constants of a file that begin with a prefix, by the rest of their names
// in capitals.
func constants(t *testing.T, file, prefix string) map[string]int {
	t.Helper()
	f, err := source.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, name := range v.Names {
			rest, ok := strings.CutPrefix(name.Name, prefix)
			if !ok || i >= len(v.Values) {
				continue
			}
			if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.INT {
				n, err := strconv.Atoi(lit.Value)
				if err != nil {
					t.Fatal(err)
				}
				out[strings.ToUpper(rest)] = n
			}
		}
		return true
	})
	return out
}

// TestProtocolDocument holds docs/embedded-protocol.md to the code: kinds of frames, words of the
// gate, error codes, bounds, and keys that other programs are likely to write by hand.
func TestProtocolDocument(t *testing.T) {
	b, err := os.ReadFile("../../docs/embedded-protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(b)
	section := func(title string) string {
		_, after, ok := strings.Cut(doc, "\n## "+title+"\n")
		if !ok {
			t.Fatalf("no section %q", title)
		}
		text, _, _ := strings.Cut(after, "\n## ")
		return text
	}
	kinds := map[string]int{}
	for _, m := range regexp.MustCompile(`(\d+) ([A-Z]{3,})\b`).FindAllStringSubmatch(section("Requests"), -1) {
		kinds[m[2]], _ = strconv.Atoi(m[1])
	}
	for _, m := range regexp.MustCompile(`\b(OK|ERROR) \((\d+)\)`).FindAllStringSubmatch(section("Requests"), -1) {
		kinds[m[1]], _ = strconv.Atoi(m[2])
	}
	want := constants(t, "protocol.go", "kind")
	if diff := cmp.Diff(want, kinds); diff != "" || len(want) < 20 {
		t.Errorf("kinds of frames (-code +document):\n%s", diff)
	}
	words := constants(t, "gate.go", "gate")
	gate := section("A terminal and its record are one")
	for _, w := range []struct{ constant, text string }{
		{"HERE", "HERE (%d)"},
		{"GO", "GO (%d)"},
		{"FAIL", "FAIL (%d:"},
		{"STANDS", "STANDS (%d)"},
		{"PAYLOAD", "payload (%d:"},
		{"FD", "descriptor %d"},
		{"START", "%d start"},
		{"NONCE", "%d nonce"},
		{"AFTER", "%d the shell after"},
		{"RECORD", "%d record"},
		{"META", "%d values"},
		{"REASON", "%d reason"},
	} {
		n, ok := words[w.constant]
		if text := fmt.Sprintf(w.text, n); !ok || !strings.Contains(gate, text) {
			t.Errorf("of the gate there is no %q", text)
		}
	}

	_, list, _ := strings.Cut(doc, "Codes: `")
	list, _, _ = strings.Cut(list, "`")
	said := strings.Fields(list)
	known := []string{"failed"}
	for _, c := range codes {
		known = append(known, c.code)
	}
	slices.Sort(said)
	slices.Sort(known)
	if diff := cmp.Diff(known, said); diff != "" {
		t.Errorf("error codes (-code +document):\n%s", diff)
	}

	const mib = 1 << 20
	for _, line := range []string{
		fmt.Sprintf("Version %d.", Version),
		fmt.Sprintf("| frame to the server | %d MiB; those over %d MiB take turns, four at a time, and must be whole in %d s |", MaxFrame/mib, largeFrame/mib, int(largeTime.Seconds())),
		fmt.Sprintf("| frame to a client | %d MiB |", MaxReply/mib),
		fmt.Sprintf("| nesting, elements | %d deep, 2²⁰ |", MaxNesting),
		fmt.Sprintf("| clients, requests of one at once | %d, %d |", maxClients, maxRequests),
		fmt.Sprintf("| what waits for a client | %d MiB;", maxQueue/mib),
		fmt.Sprintf("| subscriptions, views, unread results of a client | %d, %d, %d |", maxWatches, maxViews, maxResults),
		fmt.Sprintf("| terminals, values of a scope, their bytes | %d, %d, %d MiB |", maxTerminals, maxKeys, maxScope/mib),
		fmt.Sprintf("| a value; a record | %d KiB; 1 to %d bytes,", host.MaxValue>>10, metadata.MaxRecord),
		fmt.Sprintf("| typed input that a program has not read | %d MiB |", maxInput/mib),
		fmt.Sprintf("HELLO must come within %d s.", int(soon.Seconds())),
		fmt.Sprintf("Every frame: **%d** kind, **%d** number of the request.", keyKind, keyRequest),
		fmt.Sprintf("**%d** code, **%d** text.", errorCode, errorText),
		fmt.Sprintf("%d place (%d window, %d beside, %d below), %d session, %d target, %d window name, %d background, %d start, %d title, **%d record**, %d satellite, %d other values",
			spawnPlace, host.NewWindow, host.SplitH, host.SplitV, spawnSession, spawnTarget, spawnWindow, spawnBackground, spawnStart, spawnTitle, spawnRecord, spawnSatellite, spawnMeta),
		fmt.Sprintf("%d version, %d features, %d limits, %d pid, %d life, %d boot, %d socket, %d name, %d program, %d sessions",
			helloVersion, helloFeatures, helloLimits, helloPID, helloLife, helloBoot, helloSocket, helloName, helloProgram, helloSessions),
		fmt.Sprintf("%d scope, %d key, %d value, %d old; empty is absent", metaScope, metaKey, metaValue, metaOld),
		fmt.Sprintf("%d mode (%d shell, %d program, %d placeholder), %d argv, %d directory, %d set, %d unset, %d after exit, %d guard, %d reason, %d hint",
			startMode, host.Shell, host.Program, host.Placeholder, startArgv, startDir, startSet, startUnset, startAfter, startGuard, startReason, startHint),
		fmt.Sprintf("%d token (16 to %d letters, digits, `-`, `_`), %d name,", envelopeToken, maxToken, envelopeName),
		"`" + createKey + "`", "`" + createdPrefix + "TOKEN`", "`" + EnvTerminal + "`", "`" + EnvSocket + "`", "`phux-agent pane-exec " + Flag + "`",
	} {
		if !strings.Contains(doc, line) {
			t.Errorf("there is no %q", line)
		}
	}
	if largeFrames != 4 || maxItems != 1<<20 {
		t.Error("the document says four at a time, and 2²⁰ elements")
	}
}
