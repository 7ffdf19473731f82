package integrations

func (r *reader) live(t *Template, i int) {
	l := &t.Live[i]
	in := elem("live", i) + "."
	r.pointer(in+"event", l.Event)
	r.pointer(in+"id", l.ID)
	for _, p := range sortedKeys(l.Where) {
		if !validPointer(p) {
			r.refuse(in+"where."+p, `write where = { "/kind" = "main" }`, "the left side is a JSON pointer")
		}
	}
	r.list(in+"on", l.On)
	if len(l.On) == 0 && !r.refused(in+"on") {
		r.refuse(in+"on", `write on = ["Stop"]`, "must name the events that tell of it")
	}
}
