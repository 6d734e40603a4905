package htpasswd

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// Limits on the size of a file and its number of users.
const (
	maxBytes = 16 << 20
	maxUsers = 200_000
)

// entry is one line of a file.
type entry struct{ user, hash string }

// table contains the parsed content of a file.
type table struct {
	// entries contains the entries in file order. If a user has several lines, the first line
	// applies, as in Apache.
	entries []entry
	indexes map[string]int // indexes in entries, by user
	// decoy is the hash to compare passwords of unknown users with: the first bcrypt hash in the
	// file, or dummyHash.
	decoy string
}

// hash returns a user's hash, or an empty string for an unknown user.
func (t table) hash(user string) string {
	if i, ok := t.indexes[user]; ok {
		return t.entries[i].hash
	}
	return ""
}

// read reads and parses a file. If it returns an error, the table is empty.
func read(path string) (table, error) {
	content, err := load(path)
	if err != nil {
		return table{}, fmt.Errorf("read htpasswd file: %w", err)
	}
	t, err := parse(content)
	if err != nil {
		return table{}, fmt.Errorf("parse htpasswd file %q: %w", path, err)
	}
	return t, nil
}

// load returns the content of a file. It rejects files that are not regular, because reading a pipe
// can block.
func load(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err == nil && len(content) > maxBytes {
		err = fmt.Errorf("%q has more than %d bytes", path, maxBytes)
	}
	return content, err
}

func parse(content []byte) (table, error) {
	t := table{indexes: map[string]int{}, decoy: dummyHash}
	lines := bufio.NewScanner(bytes.NewReader(content))
	lines.Buffer(nil, maxBytes)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		user, hash, ok := strings.Cut(line, ":")
		if _, exists := t.indexes[user]; !ok || user == "" || strings.HasPrefix(line, "#") || exists {
			continue
		}
		if len(t.entries) == maxUsers {
			return table{}, fmt.Errorf("it has more than %d users", maxUsers)
		}
		if t.decoy == dummyHash && isBcrypt(hash) {
			t.decoy = hash
		}
		t.indexes[user] = len(t.entries)
		t.entries = append(t.entries, entry{user, hash})
	}
	return t, nil
}

// cache caches the table of a file until the file changes, so that the cost of a login does not
// depend on the length of the file.
type cache struct {
	mu       sync.Mutex
	table    table
	info     os.FileInfo // describes the file that table was read from; nil before the first read
	loadTime time.Time
}

// minFileAge is the minimum age of a file at which its table is cached. A later change to an older
// file always changes the file's modification time, so the cache can detect the change.
const minFileAge = time.Second

// read returns the table for a file.
func (c *cache) read(path string) (table, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	info, err := os.Stat(path)
	if err != nil {
		return table{}, fmt.Errorf("read htpasswd file: %w", err)
	}
	if c.current(info) {
		return c.table, nil
	}
	start := time.Now()
	t, err := read(path)
	if err != nil {
		return table{}, err
	}
	c.table, c.info, c.loadTime = t, info, start
	return t, nil
}

// current reports whether the table matches the file that info describes.
func (c *cache) current(info os.FileInfo) bool {
	return c.info != nil && os.SameFile(c.info, info) && c.info.ModTime().Equal(info.ModTime()) && c.info.Size() == info.Size() &&
		c.loadTime.Sub(info.ModTime()) > minFileAge
}
