//go:build !linux

package proc

func children(int) (int, error)      { return 0, ErrUnsupported }
func editsLine(string) (bool, error) { return false, ErrUnsupported }
