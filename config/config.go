// Package config reads the configuration of a host: OpenShift 3's MasterConfig and NodeConfig
// (github.com/openshift/api/legacyconfig/v1), each with one block of ours under the key `slipway`.
//
// An unmodified master-config.yaml or node-config.yaml of OpenShift 3 is a valid configuration.
// Reading is strict: an unknown key, a wrong type, a key set twice and an impossible value are
// problems, and all problems of all files are reported together, each with file, line and key.
// What a file leaves out has the defaults of defaults.go; where OpenShift has two spellings for one
// setting, resolve.go gives the one plain value; ignored.go lists what this version acts upon.
package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// The kinds of document, the only ones a configuration file may hold.
const (
	masterKind = "MasterConfig"
	nodeKind   = "NodeConfig"
)

// Config is the effective configuration of a host: what the files say, completed with defaults.
type Config struct {
	// DataDir is the data directory, absolute.
	DataDir string
	// Master configures the control plane and Node the node; Load sets both.
	Master *MasterConfig
	Node   *NodeConfig

	master, node *document
}

// Load reads the configuration of the host whose data directory is dataDir.
//
// With file empty it reads `<dataDir>/master/master-config.yaml` and `<dataDir>/node/node-config.yaml`. Otherwise
// it reads the one or several YAML documents of file; a kind that file does not hold comes from the data directory.
// What no file holds has defaults alone. Nothing is written: WriteDefaults does that. Relative paths in a file are
// relative to that file's folder, as in OpenShift.
//
// A configuration that cannot be used is an error of type Problems.
func Load(dataDir, file string) (*Config, error) {
	c, err := LoadAnyway(dataDir, file)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// LoadAnyway is Load for who only looks at a host: beside an error of type Problems it returns what could be read, completed with defaults.
func LoadAnyway(dataDir, file string) (*Config, error) {
	dataDir, err := filepath.Abs(dataDir)
	if err != nil {
		return nil, fmt.Errorf("find data directory: %w", err)
	}
	if file != "" {
		if file, err = filepath.Abs(file); err != nil {
			return nil, fmt.Errorf("find configuration file: %w", err)
		}
	}
	c := &Config{DataDir: dataDir}
	problems := c.read(file)
	c.complete()
	problems = append(problems, c.validate()...)
	if len(problems) > 0 {
		return c, problems.sorted()
	}
	return c, nil
}

// MasterFile is the master's file of a data directory.
func MasterFile(dataDir string) string {
	return filepath.Join(dataDir, "master", "master-config.yaml")
}

// NodeFile is the node's file of a data directory.
func NodeFile(dataDir string) string { return filepath.Join(dataDir, "node", "node-config.yaml") }

// read decodes the documents of file and, for a kind that it lacks, those of the data directory.
func (c *Config) read(file string) Problems {
	c.Master, c.Node = &MasterConfig{}, &NodeConfig{}
	c.master, c.node = &document{file: MasterFile(c.DataDir)}, &document{file: NodeFile(c.DataDir)}
	seen := map[string]bool{}
	var problems Problems
	if file != "" {
		found := c.readFile(file, seen, masterKind, nodeKind)
		if len(seen) == 0 && len(found) == 0 {
			found = Problems{{File: file, Text: "is empty; write a MasterConfig or a NodeConfig"}}
		}
		problems = append(problems, found...)
	}
	for _, own := range []struct{ kind, path string }{{masterKind, MasterFile(c.DataDir)}, {nodeKind, NodeFile(c.DataDir)}} {
		if seen[own.kind] {
			continue
		}
		if _, err := os.Stat(own.path); os.IsNotExist(err) {
			continue // defaults alone
		}
		found := c.readFile(own.path, seen, own.kind)
		if !seen[own.kind] && len(found) == 0 {
			found = Problems{{File: own.path, Text: "is empty; remove it, and the next start writes it with defaults"}}
		}
		problems = append(problems, found...)
	}
	return problems
}

// readFile decodes each document of a file into the part of c that its kind names; kinds are those
// that the file may hold. It adds what it finds to seen.
func (c *Config) readFile(path string, seen map[string]bool, kinds ...string) Problems {
	roots, problems := parseFile(path)
	for _, root := range roots {
		kind, problem := kindOf(path, root, kinds)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		if seen[kind] {
			problems = append(problems, Problem{File: path, Line: root.Line, Text: "holds a second " + kind + "; keep one"})
			continue
		}
		seen[kind] = true
		var found Problems
		switch kind {
		case masterKind:
			c.master, found = decode(path, root, c.Master, retiredMasterKeys())
			resolve(filepath.Dir(path), c.Master.paths())
			c.Master.resolveProviders(filepath.Dir(path))
		case nodeKind:
			c.node, found = decode(path, root, c.Node, nil)
			resolve(filepath.Dir(path), c.Node.paths())
		}
		problems = append(problems, found...)
	}
	return problems
}

func (c *Config) complete() {
	if _, set := c.master.lines["auditConfig"]; !set {
		c.Master.AuditConfig = defaultAudit()
	}
	DefaultMaster(c.Master, c.DataDir)
	DefaultNode(c.Node, c.DataDir, hostName())
}
