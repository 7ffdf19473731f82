//go:build !linux

package atomicfile

import "errors"

func renameExcl(_, _ string) error { return errors.ErrUnsupported }
