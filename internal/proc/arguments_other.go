//go:build !linux

package proc

// Arguments is unsupported here.
func Arguments(id ID) ([]string, error) { return nil, ErrUnsupported }
