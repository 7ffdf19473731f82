// Package phuxagent is the map of the house. It holds no code; the program is
// cmd/phux-agent, and each noun has one room.
//
//	cmd/phux-agent   the front door: one file a verb, from flags to one call to what is printed;
//	                 errors.go alone knows exit codes and hints; a concrete host is named here once
//	launch           establishes an identity, claims it, spawns with its record, reads back;
//	                 and what a pane does between its birth and its agent
//	capture          a live workspace into an archive: snapshot, observation, durability
//	restore          Make (archive and facts into one verdict a pane, pure), Apply (plan into report)
//	rehearsal        what a template promises, played on a stage of its own: the stand-in, the judge
//	doctor           what would keep a pane from coming back, found before it does; the understudy
//	archive          the format, its validation, the generations on disk
//	owner            who runs an identity: claims, observation, transcript probes, liveness
//	spool            what agents' hooks told and nobody has taken in yet
//	plugin           packages, trust, Resolve(integration id) into one owner or a typed refusal
//	status           what is known of a server's agents at a glance, in one small file
//	picker           a person chooses: the plan's data in, a choice out
//	hooks            what agents call us by, written into their own files and taken out again
//	boot             what starts a restore after the machine did, as text: systemd's unit, launchd's
//	config           the user's configuration, and the file that verbs write beside it
//	integrations     templates, and the one argument vector builder; builtin/ is data
//	host             where terminals live: the interface, its data, its sentinels
//	host/tmux        drives a real tmux
//	attach           a person's side of the embedded host: one terminal, its bytes untouched
//	host/memory      an in-memory body with scriptable faults
//	host/hosttest    the conformance suite that every body passes
//	metadata         the nouns that all of the above speak of, their bounds, their exact form
//	internal/...     atomicfile, proc, dirs, trust, thread, ui; fakeagent and looks, for tests: they import nothing of ours
//
// The arrows, enforced by house_test.go:
//
//	cmd -> launch, capture, restore -> owner, plugin -> integrations -> metadata
//	              |        '---------> archive ----------------------> metadata
//	              '------------------> host (the interface) ---------> metadata
//	host/* -> host; cmd -> rehearsal -> integrations; cmd -> doctor -> capture, restore
//
// A new agent is one TOML file and no Go. A new multiplexer is one folder below host and one
// line in cmd.
//
// # Compatibility
//
// Records (phux.agent-session/v1) and archives (schema 2) are byte-compatible with phux's.
// Every released version reads the archives of every earlier one; a schema from the future is
// refused and left alone. JSON documents of --json carry schema_version, and are only ever
// added to. Exit codes may gain members; an unknown one is a failure. Go packages are not an
// interface: nothing outside this module may rely on them.
package phuxagent
