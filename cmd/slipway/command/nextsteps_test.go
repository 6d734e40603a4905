package command

import (
	"os"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/platform/host"
)

func TestNextStepsNameConsoleAndHidePassword(t *testing.T) {
	h, err := host.Load(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	const password = "abcde-fghij"
	if err := os.WriteFile(h.DeveloperPassword(), []byte(password+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, terminal := range []bool{true, false} {
		var out strings.Builder
		printNextSteps(&out, h, terminal)
		got := out.String()
		if strings.Contains(got, password) != terminal || strings.Contains(got, h.DeveloperPassword()) == terminal {
			t.Errorf("terminal is %v: %s", terminal, got)
		}
		if address := h.ConsoleURL(); address == "" || !strings.Contains(got, "Web console:\n  "+address+"\n") {
			t.Errorf("the output does not contain the console's address %q: %s", address, got)
		}
	}
}
