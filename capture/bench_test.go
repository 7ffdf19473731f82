package capture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/phux-agent/phux-agent/host"
	"github.com/phux-agent/phux-agent/metadata"
	"github.com/phux-agent/phux-agent/owner"
)

// BenchmarkCapture is what a capture costs beside the snapshot of its host, of 200 panes: shells;
// agents of which nothing can be proven; agents that prove their conversation by a file. The
// agents' process is this one, and so is their environment; each has a transcript and a claim.
func BenchmarkCapture(b *testing.B) {
	for _, integration := range []string{"", "blind", "demo"} {
		name := integration
		if name == "" {
			name = "shells"
		}
		b.Run(name, func(b *testing.B) {
			r := newRig(b)
			b.Setenv("DEMO_HOME", filepath.Join(b.TempDir(), "demo"))
			self, _ := newMachine(time.Now).process(os.Getpid())
			specs := make([]spec, 200)
			for i := range specs {
				specs[i] = spec{integration: integration, id: uuid.NewString(), mode: host.Shell}
				dir := filepath.Join(os.Getenv("DEMO_HOME"), "projects", fmt.Sprint(i%20))
				must(b, os.MkdirAll(dir, 0o755))
				must(b, os.WriteFile(filepath.Join(dir, specs[i].id+".jsonl"), []byte("{}\n"), 0o600))
			}
			for i, t := range r.session("work", specs...) {
				if integration == "" {
					continue
				}
				must(b, r.host.Edit(t, func(p *host.Pane) { p.Origin, p.PID = host.Ours, self.PID }))
				must(b, r.req.Claims.Rebuild(metadata.Identity{IntegrationID: integration, NativeID: specs[i].id}, self, owner.Place{}))
			}
			r.req.proofs = nil
			before, n := cpu(b), 0
			for b.Loop() {
				if _, _, err := Capture(context.Background(), r.req); err != nil {
					b.Fatal(err)
				}
				n++
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/1000/float64(n), "cpu-ms/op")
		})
	}
}

// cpu is what this process has used, which a busy machine does not falsify.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
