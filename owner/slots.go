package owner

import (
	"errors"

	"github.com/phux-agent/phux-agent/integrations"
)

// patternOf is an observer's path as path.Match reads it: pid 0 is any process, id "" is any
// conversation.
func patternOf(ob *integrations.Observe, root string, pid int, id string) (string, error) {
	if root == "" {
		return "", errors.New("its template names no transcript root to look below")
	}
	pattern := ob.Pattern(root, pid, id)
	if pattern == "" {
		return "", errors.New("its observer has no path for this id")
	}
	return pattern, nil
}
