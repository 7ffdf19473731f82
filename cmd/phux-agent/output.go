package main

import (
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// output is standard output, and remembers what went wrong with it: verbs print line by line, and
// none is to end with success whose words did not arrive.
type output struct {
	io.Writer
	err error // the first
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if err != nil && o.err == nil {
		o.err = err
	}
	return n, err
}

// judge is what a verb that returned err ends with: its own error first.
func (o *output) judge(a *app, err error) error {
	gone := errors.Is(o.err, syscall.EPIPE) // the reader had enough, and wants no words
	switch status := (*statusError)(nil); {
	case o.err == nil:
	case gone && (err == nil || errors.Is(err, syscall.EPIPE)):
		return &statusError{code: failed}
	case err == nil:
		return o.err
	case errors.As(err, &status) && !gone:
		a.warn("%v", o.err)
	}
	return err
}

// outliveReaders makes a write to a pipe whose reader has left an error, where it would else end
// the program: between a pane that was made, say, and the save that follows. Programs that are
// become or started are not affected.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// file is the file that a stream writes to or reads from, nil where it is none.
func file(stream any) *os.File {
	if o, ok := stream.(*output); ok {
		stream = o.Writer
	}
	f, _ := stream.(*os.File)
	return f
}

// hint says, beside a result, what helps. Documents say it in their own words.
func (a *app) hint(format string, args ...any) {
	if !a.json {
		printSafe(a.stderr, "phux-agent: hint: "+format, args...)
	}
}
