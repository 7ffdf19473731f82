package trust

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
)

// maxDatabase bounds how much of a user database is read.
const maxDatabase = 16 << 20

// groups is what the machine's own files say of users and groups. A group of a directory
// service is not in them, and is taken for shared: what cannot be seen is not trusted.
type groups struct {
	names   map[int]string   // gid -> name
	members map[int][]string // gid -> user names, primary members included
	users   map[int]string   // uid -> name
}

func readGroups(passwd, group string) *groups {
	g := &groups{names: map[int]string{}, members: map[int][]string{}, users: map[int]string{}}
	eachLine(passwd, func(f []string) {
		if len(f) < 4 {
			return
		}
		uid, err1 := strconv.Atoi(f[2])
		gid, err2 := strconv.Atoi(f[3])
		if err1 != nil || err2 != nil {
			return
		}
		if _, ok := g.users[uid]; !ok {
			g.users[uid] = f[0]
		}
		g.members[gid] = append(g.members[gid], f[0])
	})
	eachLine(group, func(f []string) {
		if len(f) < 4 {
			return
		}
		gid, err := strconv.Atoi(f[2])
		if err != nil {
			return
		}
		g.names[gid] = f[0]
		for m := range strings.SplitSeq(f[3], ",") {
			if m = strings.TrimSpace(m); m != "" {
				g.members[gid] = append(g.members[gid], m)
			}
		}
	})
	return g
}

func eachLine(file string, do func(fields []string)) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	sc := bufio.NewScanner(io.LimitReader(f, maxDatabase))
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		do(strings.Split(sc.Text(), ":"))
	}
}

// shared says who besides the user may write as the group; empty where nobody can.
func (g *groups) shared(gid, uid int) string {
	name, known := g.names[gid]
	if !known {
		return fmt.Sprintf("group %d, which is not in /etc/group", gid)
	}
	user, ok := g.users[uid]
	if !ok {
		return fmt.Sprintf("group %q, and uid %d is not in /etc/passwd", name, uid)
	}
	if gid != 0 && gid != uid && name != user {
		return fmt.Sprintf("group %q, which is not your private group", name)
	}
	for _, m := range slices.Sorted(slices.Values(g.members[gid])) {
		if m != user && m != g.users[0] {
			return fmt.Sprintf("group %q, which %q is in", name, m)
		}
	}
	return ""
}
