package owner

import (
	"testing"

	"github.com/phux-agent/phux-agent/integrations"
)

func TestTells(t *testing.T) {
	tmpl, _, err := integrations.Parse("x.toml", []byte(`id = "x"
[launch]
command = ["x"]
[[live]]
on = ["Note"]
where = { "/kind" = "asks" }
id = "/session"
state = "blocked"
attention = "low"
[[live]]
on = ["Note", "Start"]
event = "/name"
state = "working"
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		event, payload string
		want           Said
		ok             bool
	}{
		{"Note", `{"kind":"asks","session":"s"}`, Said{"blocked", "low", "s"}, true},
		{"Note", `{"kind":"asks","session":7}`, Said{"blocked", "low", ""}, true},
		{"Note", `{"kind":"tells","session":"s"}`, Said{State: "working"}, true},
		{"Note", `torn`, Said{State: "working"}, true},
		{"Start", ``, Said{State: "working"}, true},
		{"", `{"name":"Start"}`, Said{State: "working"}, true},
		{"", `{"kind":"asks"}`, Said{}, false},
		{"note", `{"kind":"asks"}`, Said{}, false},
		{"Other", `{}`, Said{}, false},
	} {
		if got, ok := Tells(tmpl, c.event, []byte(c.payload)); got != c.want || ok != c.ok {
			t.Errorf("%s %s: %v %v, want %v %v", c.event, c.payload, got, ok, c.want, c.ok)
		}
	}
	if _, ok := Tells(&integrations.Template{}, "Note", nil); ok {
		t.Error("a template without [[live]] tells")
	}
}
