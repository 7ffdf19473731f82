package launch

import (
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/phux-agent/phux-agent/archive"
	"github.com/phux-agent/phux-agent/internal/ui"
)

// preface shows a file of ours, once. Whatever is in it, only text and colours reach the terminal.
func (b *body) preface(path string) {
	if path == "" {
		return
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || int(st.Uid) != os.Getuid() || unix.Unlink(path) != nil {
		return
	}
	const most = archive.MaxTextSize + 1024 // the line that ends it
	text, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return
	}
	b.say(ui.Looks(string(text), archive.MaxTextLines+2, most))
}
