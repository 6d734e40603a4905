package htpasswd

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// EnsureFirstUser creates an htpasswd file with one user, and writes the user's random password to
// passwordFile. If passwordFile already exists, EnsureFirstUser uses the password in it.
// EnsureFirstUser is a no-op if the htpasswd file exists.
func EnsureFirstUser(file, user, passwordFile string) error {
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	password, err := os.ReadFile(passwordFile)
	if errors.Is(err, os.ErrNotExist) {
		text := strings.ToLower(rand.Text())
		password = []byte(strings.Join([]string{text[:5], text[5:10], text[10:15], text[15:20]}, "-"))
		err = atomicfile.Write(passwordFile, append(password, '\n'), 0o600)
	}
	if err == nil {
		err = Set(file, user, strings.TrimSpace(string(password)))
	}
	if err != nil {
		return fmt.Errorf("create user %q: %w", user, err)
	}
	return nil
}
