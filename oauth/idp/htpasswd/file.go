package htpasswd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/crypto/bcrypt"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// ErrUnknownUser means that a user is not in the file.
var ErrUnknownUser = errors.New("the file does not contain the user")

// List returns the users in a file, in the order of its lines. If the file does not exist, the list
// is empty.
func List(path string) ([]string, error) {
	table, err := read(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	users := []string{}
	for _, e := range table.entries {
		users = append(users, e.user)
	}
	return users, nil
}

// Set sets a user's password. It adds the user and creates the file if they are missing. The
// password is stored as a bcrypt hash.
func Set(path, user, password string) error {
	if err := checkUser(user); err != nil {
		return err
	}
	if password == "" {
		return errors.New("the password is empty")
	}
	hash, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.DefaultCost)
	if err != nil {
		return fmt.Errorf("hash password of %q: %w", user, err)
	}
	return edit(path, func(entries []entry) ([]entry, error) {
		at := slices.IndexFunc(entries, func(e entry) bool { return e.user == user })
		if at < 0 {
			return append(entries, entry{user, string(hash)}), nil
		}
		entries[at].hash = string(hash)
		return entries, nil
	})
}

// Delete removes a user from a file. It returns ErrUnknownUser if the file does not contain the
// user.
func Delete(path, user string) error {
	return edit(path, func(entries []entry) ([]entry, error) {
		remaining := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.user == user })
		if len(remaining) == len(entries) {
			return nil, fmt.Errorf("delete user %q from %q: %w", user, path, ErrUnknownUser)
		}
		return remaining, nil
	})
}

// edit applies change to a file's entries and replaces the file atomically.
func edit(path string, change func([]entry) ([]entry, error)) error {
	table, err := read(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	entries, err := change(table.entries)
	if err != nil {
		return err
	}
	var content strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&content, "%s:%s\n", e.user, e.hash)
	}
	return atomicfile.Write(path, []byte(content.String()), 0o600)
}

func checkUser(user string) error {
	if user == "" || strings.ContainsAny(user, ":/%\r\n") || user != strings.TrimSpace(user) || strings.HasPrefix(user, "#") || user == "~" || len(user) > maxUser {
		return fmt.Errorf("user name %q cannot be used: it must have 1 to %d bytes, without : / %% and line breaks, must not begin with # or a space or end with a space, and must not be ~", user, maxUser)
	}
	return nil
}

// maxUser is the maximum length of a user name, in bytes. An Identity's name can have at most 253
// bytes, including the provider's name.
const maxUser = 200
