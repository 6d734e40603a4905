package haproxy

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
)

// Config is a configuration of HAProxy. Only a reload can change the frame and the files; the
// runtime interface can change tables and servers. A Config is immutable and shares unchanged parts
// with the previous one.
type Config struct {
	// Frame is the text before the backends.
	Frame string
	// Backends are sorted by name.
	Backends []*Backend
	// Tables map hosts and paths to names of backends. The key is the path of the table's file
	// below the working directory.
	Tables map[string][]Entry
	// Certificates map hosts to the files of their certificates, with options.
	Certificates []Entry
	// Files are further files by path below the working directory: certificates and pages.
	Files map[string][]byte
	// Shapes are the shapes of backends of routes without annotations.
	Shapes []string
	// whole, if set, is the output of a custom template. It replaces frame and backends.
	whole string
}

// Entry is an entry of a table.
type Entry struct{ Key, Value string }

// Backend is a backend with its servers.
type Backend struct {
	Name string
	// Shape is the text of the backend with keyMark instead of Key. Many backends share a shape.
	Shape, Key string
	Servers    []Server
	// Cookie means that a cookie keeps clients at a server.
	Cookie bool
}

// keyMark is the placeholder for a backend's key in its shape. No setting or annotation contains
// it.
const keyMark = "\x00"

// Server is a server of a backend. Checked enables health checks; the only server of a backend is
// not checked, because HAProxy has no alternative.
type Server struct {
	Name, IP, Port string
	Weight         int32
	Options        string
	Checked        bool
}

// Text returns the whole configuration.
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

// text returns the backend without its servers.
func (b *Backend) text() string {
	return "\nbackend " + b.Name + "\n" + strings.ReplaceAll(b.Shape, keyMark, b.Key)
}

func (b *Backend) write(text *strings.Builder) {
	text.WriteString(b.text())
	for _, server := range b.Servers {
		for _, word := range []string{
			"  server ", server.Name, " ", server.address(), " weight ",
			strconv.Itoa(int(server.Weight)), " ", server.Options, "\n",
		} {
			text.WriteString(word)
		}
	}
}

// files returns all files by path below the working directory.
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

// certificateList returns the certificates in HAProxy's format.
func (c *Config) certificateList() []byte {
	return lines(c.Certificates, func(e Entry) string { return e.Value + " " + e.Key })
}

// certificateOf returns the file of an entry of certificates.
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
