package main

import (
	"os"
	"strconv"
	"strings"
	"time"
)

// clockVariable names a variable of the environment that leads to a file: of the seconds by which this
// program takes the clock to be set otherwise than it is. The tests' binary is linked with a name
// (-X main.clockVariable=…), so that a clock can jump in them; any other has none.
var clockVariable string

// now is the time, for everything that is written down or judged by it.
func (a *app) now() time.Time {
	now := time.Now()
	if clockVariable == "" {
		return now
	}
	b, err := os.ReadFile(a.getenv(clockVariable))
	if err != nil {
		return now
	}
	set, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return now
	}
	return now.Add(time.Duration(set) * time.Second)
}
