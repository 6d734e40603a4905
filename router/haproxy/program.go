package haproxy

import (
	"errors"
	"os"
	"os/user"

	"github.com/slipway-platform/slipway/internal/program"
)

// FindProgram returns the path to the HAProxy program on this machine.
func FindProgram() (string, error) {
	if path, ok := program.Find("haproxy"); ok {
		return path, nil
	}
	return "", errors.New("serve routes: this machine has no HAProxy; run: apt-get install haproxy")
}

// Account returns the user account of the HAProxy package, if the account exists and the current
// process can switch to it.
func Account() string {
	const name = "haproxy"
	if _, err := user.Lookup(name); err != nil || os.Geteuid() != 0 {
		return ""
	}
	return name
}
