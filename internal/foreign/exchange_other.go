//go:build !linux

package foreign

import "errors"

func exchange(string, string) error { return errors.ErrUnsupported }
