package nearest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"command", "env", "save_after_launch", "id"}
	for word, want := range map[string]string{
		"comand": "command", "COMMAND": "command", "commando": "command", "enw": "env", "eqw": "",
		"save_after_lunch": "save_after_launch", "x": "", "": "", "entirely_different": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
		}
	}
}
