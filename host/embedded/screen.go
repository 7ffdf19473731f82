package embedded

func newScreen(cols, rows int) emulator { return &rawScreen{} }

type rawScreen struct{ b []byte }

func (r *rawScreen) Write(b []byte)           { r.b = append(r.b, b...) }
func (r *rawScreen) Resize(cols, rows int)    {}
func (r *rawScreen) Lost()                    {}
func (r *rawScreen) Paint() []byte            { return r.b }
func (r *rawScreen) Text(history int) string  { return string(r.b) }
func (r *rawScreen) Cursor() (int, int, bool) { return 0, 0, true }
func (r *rawScreen) Title() string            { return "" }
