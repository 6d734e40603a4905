package haproxy

import (
	"bytes"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// maxSecretBytes is the maximum size of certificates and keys that are sent through HAProxy's
// runtime interface, in bytes. A command must fit into one of HAProxy's buffers.
const maxSecretBytes = 16 << 10

// certificates adds steps to the plan that change certificates and add new pod CAs. It returns the
// steps that must come last, when no table refers to a host whose certificate is removed. If the
// runtime interface does not support one of the changes, all certificate changes wait for the next
// reload. For example, a change of the CAs for existing pods needs a reload. Otherwise, HAProxy
// would keep connections and sessions to pods that the new CAs do not trust.
func (p *plan) certificates(config *Config) (last []step) {
	now := p.served.config
	if sameList(now.Certificates, config.Certificates) && sameFiles(now.Files, config.Files) {
		return nil
	}
	changed, possible := p.changedFiles(now, config)
	if !possible {
		p.all = false
		return nil
	}
	p.config.Certificates, p.config.Files = config.Certificates, config.Files
	had, needed := p.listed(now), p.listed(config)
	for _, name := range changed {
		path, content := filepath.Join(p.dir, name), config.Files[name]
		switch {
		case name == defaultCertificateFile, needed[path] && had[path]:
			p.load("cert", path, content, false)
		case strings.HasPrefix(name, authoritiesDir):
			p.load("ca-file", path, content, true)
		}
	}
	for path := range needed {
		if !had[path] {
			p.load("cert", path, config.Files[strings.TrimPrefix(path, p.dir+"/")], true)
		}
	}
	return p.list(now.Certificates, config.Certificates, needed)
}

// changedFiles returns the names of files with new content, sorted. possible is false if the
// runtime interface does not support one of the changes.
func (p *plan) changedFiles(now, then *Config) (names []string, possible bool) {
	for name, content := range then.Files {
		before, ok := now.Files[name]
		if ok && bytes.Equal(before, content) {
			continue
		}
		managed := name == defaultCertificateFile || strings.HasPrefix(name, certificatesDir) || strings.HasPrefix(name, authoritiesDir) && !ok
		if !managed || len(content) > maxSecretBytes || p.damaged[filepath.Join(p.dir, name)] {
			return nil, false
		}
		names = append(names, name)
	}
	_, ok := then.Files[serviceCAFile]
	_, there := now.Files[serviceCAFile]
	slices.Sort(names)
	return names, ok == there
}

// listed returns the set of certificate files that config.Certificates references.
func (p *plan) listed(config *Config) map[string]bool {
	paths := make(map[string]bool, len(config.Certificates))
	for _, entry := range config.Certificates {
		paths[certificateOf(entry)] = true
	}
	return paths
}

// load adds a step to the plan that replaces the content of a file in HAProxy. If unknown is set,
// HAProxy has not loaded the file yet.
func (p *plan) load(kind, path string, content []byte, unknown bool) {
	var commands []string
	if unknown {
		commands = []string{"new ssl " + kind + " " + path}
	}
	commands = append(commands, "set ssl "+kind+" "+path+payload(string(content)), "commit ssl "+kind+" "+path)
	p.steps = append(p.steps, step{path, commands, "abort ssl " + kind + " " + path})
}

// payload formats the multi-line argument of a command. The text must not contain empty lines.
func payload(text string) string { return " <<\n" + strings.TrimRight(text, "\n") + "\n" }

// list adds steps to the plan that update HAProxy's certificate list, which is sorted by host.
func (p *plan) list(now, then []Entry, needed map[string]bool) (last []step) {
	file := filepath.Join(p.dir, certificateListFile)
	before, after := map[string]string{}, map[string]string{}
	for _, entry := range now {
		before[entry.Key] = entry.Value
	}
	for _, entry := range then {
		after[entry.Key] = entry.Value
	}
	for _, host := range slices.Sorted(maps.Keys(before)) {
		if before[host] == after[host] {
			continue
		}
		path := certificateOf(Entry{host, before[host]})
		leave := "del ssl crt-list " + file + " " + path
		if needed[path] { // another host needs the certificate
			p.say(path, leave)
			continue
		}
		last = append(last, step{of: path, commands: []string{leave, "del ssl cert " + path}})
	}
	for _, host := range slices.Sorted(maps.Keys(after)) {
		if before[host] != after[host] {
			p.say(certificateOf(Entry{host, after[host]}), "add ssl crt-list "+file+payload(after[host]+" "+host))
		}
	}
	return last
}
