package haproxy

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
)

// Config is a configuration: what HAProxy must read anew to change, and tables and servers, which it is told of while it runs. It never changes, and has
// what is as it was in the configuration before in common with that.
type Config struct {
	// Frame is the text above the backends.
	Frame string
	// Backends are in the order of their names.
	Backends []*Backend
	// Tables lead from hosts and paths to the names of backends, by the path of their file below the working directory.
	Tables map[string][]Entry
	// Certificates lead from hosts to the files of their certificates, with options.
	Certificates []Entry
	// Files are the further files by path below the working directory: certificates, pages.
	Files map[string][]byte
	// Shapes are those of backends that routes without annotations have.
	Shapes []string
	// whole, if set, is the configuration made by a custom template, in place of frame and backends.
	whole string
}

// Entry is a line of a table.
type Entry struct{ Key, Value string }

// Backend is a backend: its text, and its servers.
type Backend struct {
	Name string
	// Shape is its text, with keyMark where Key stands. Many backends have the same one.
	Shape, Key string
	Servers    []Server
	// Cookie says that clients stay with a server by a cookie.
	Cookie bool
}

// keyMark stands for a backend's key in its shape. It is in no setting and no annotation.
const keyMark = "\x00"

// Server is a server of a backend. Checked says that it is checked; a lone server is not, since there is no other to turn to.
type Server struct {
	Name, IP, Port string
	Weight         int32
	Options        string
	Checked        bool
}

// Text is the whole configuration.
func (c *Config) Text() string {
	if c.whole != "" {
		return c.whole
	}
	var text strings.Builder
	text.WriteString(c.Frame)
	for _, backend := range c.Backends {
		backend.write(&text)
	}
	return text.String()
}

// text is the backend's above its servers.
func (b *Backend) text() string {
	return "\nbackend " + b.Name + "\n" + strings.ReplaceAll(b.Shape, keyMark, b.Key)
}

func (b *Backend) write(text *strings.Builder) {
	text.WriteString(b.text())
	for _, server := range b.Servers {
		for _, word := range []string{"  server ", server.Name, " ", server.address(), " weight ", strconv.Itoa(int(server.Weight)), " ", server.Options, "\n"} {
			text.WriteString(word)
		}
	}
}

// files are all files by path below the working directory.
func (c *Config) files() map[string][]byte {
	all := maps.Clone(c.Files)
	for path, table := range c.Tables {
		all[path] = lines(table, func(e Entry) string { return e.Key + " " + e.Value })
	}
	if c.Tables != nil {
		all[certificateListFile] = c.certificateList()
	}
	return all
}

// certificateList are the certificates as HAProxy reads them.
func (c *Config) certificateList() []byte {
	return lines(c.Certificates, func(e Entry) string { return e.Value + " " + e.Key })
}

// certificateOf is the file of an entry of certificates.
func certificateOf(entry Entry) string {
	file, _, _ := strings.Cut(entry.Value, " ")
	return file
}

func lines(table []Entry, line func(Entry) string) []byte {
	var text bytes.Buffer
	for _, entry := range table {
		text.WriteString(line(entry))
		text.WriteByte('\n')
	}
	return text.Bytes()
}

func (s Server) address() string {
	if strings.Contains(s.IP, ":") {
		return "[" + s.IP + "]:" + s.Port
	}
	return s.IP + ":" + s.Port
}
