package host

// Asider is what a host offers whose Create honours CreateSession.Aside.
type Asider interface {
	// SetsAside does nothing: that it is there says it.
	SetsAside()
}

// Aside names the session that has the name of one that is to be created. In the transaction that
// gives the new one its name the old one is renamed, and only if it still is what is said here:
// else Create is ErrSessionExists. Its clients are shown the new session; nothing of it is ended.
type Aside struct {
	Session  string   // host id
	Terminal Terminal // the only pane of its only window
	Occupant Occupant
	Name     string // its new name, which must be free
}

func (a *Aside) check() error {
	switch {
	case a == nil:
		return nil
	case a.Session == "" || a.Terminal == (Terminal{}) || a.Occupant.PID <= 0:
		return badRequest("a session to be set aside that is not named whole")
	}
	return checkName("session", a.Name)
}
