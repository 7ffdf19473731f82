package atomicfile

import "os"

// Unsynced makes path hold data, 0600, whole or not at all for whoever reads it, and waits for no
// disk: for what a crash of the machine ends anyway, or what is only a hint. temp is a name in the same
// directory that no other writer uses at that moment; a killed one leaves it, and the next writes over
// it.
func Unsynced(path, temp string, data []byte) error {
	err := os.WriteFile(temp, data, 0o600)
	if err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		_ = os.Remove(temp)
	}
	return err
}
