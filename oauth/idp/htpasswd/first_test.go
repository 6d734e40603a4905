package htpasswd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFirstUserIsCreatedOnce(t *testing.T) {
	dir := t.TempDir()
	users, passwordFile := filepath.Join(dir, "users"), filepath.Join(dir, "password")
	ensure := func() {
		t.Helper()
		if err := EnsureFirstUser(users, "developer", passwordFile); err != nil {
			t.Fatal(err)
		}
	}
	ensure()
	password, err := os.ReadFile(passwordFile)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(passwordFile)
	if err != nil || info.Mode().Perm() != 0o600 || len(strings.TrimSpace(string(password))) < 20 {
		t.Errorf("mode %v, %v, %d characters", info.Mode(), err, len(password))
	}
	provider := Provider{File: users}
	valid := func() bool {
		_, err := provider.AuthenticatePassword(t.Context(), "developer", strings.TrimSpace(string(password)))
		return err == nil
	}
	if !valid() {
		t.Error("the password is not accepted")
	}
	// If a start is interrupted after it has written the password file but before it has written
	// the htpasswd file, the next start reuses the password.
	if err := os.Remove(users); err != nil {
		t.Fatal(err)
	}
	if ensure(); !valid() {
		t.Error("the password is not accepted after an interruption")
	}
	// EnsureFirstUser does not recreate a user whom the administrator deleted.
	if err := Delete(users, "developer"); err != nil {
		t.Fatal(err)
	}
	if ensure(); valid() {
		t.Error("the deleted user was created again")
	}
}
