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

// ErrUnknownUser is the answer for a user who is not in the file.
var ErrUnknownUser = errors.New("the file has no such user")

// List names the users of a file in their order. A file that does not exist has none.
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

// Set gives a user of a file a password, and makes both where they do not exist. The password is stored as a bcrypt hash.
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

// Delete takes a user out of a file. One who is not in it is ErrUnknownUser.
func Delete(path, user string) error {
	return edit(path, func(entries []entry) ([]entry, error) {
		left := slices.DeleteFunc(slices.Clone(entries), func(e entry) bool { return e.user == user })
		if len(left) == len(entries) {
			return nil, fmt.Errorf("delete user %q from %q: %w", user, path, ErrUnknownUser)
		}
		return left, nil
	})
}

// edit replaces a file as a whole, so that who reads it sees the old or the new one.
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
		return fmt.Errorf("user name %q cannot be used: it must have 1 to %d bytes without : / %% and line ends, no space at its ends and no # in front, and not be ~", user, maxUser)
	}
	return nil
}

// maxUser is the longest user name in bytes: an object's name has 253, of which the provider's name takes some.
const maxUser = 200
