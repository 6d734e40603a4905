// Package config reads a host's configuration: OpenShift 3's MasterConfig and NodeConfig
// (github.com/openshift/api/legacyconfig/v1), each with an additional `slipway` block.
//
// An unmodified master-config.yaml or node-config.yaml from OpenShift 3 is a valid configuration.
// Decoding is strict: unknown keys, wrong types, duplicate keys and invalid values are problems.
// Load reports the problems in all files together, each with file, line and key. defaults.go sets
// the defaults for keys that a file omits. resolve.go resolves settings that OpenShift can express
// in two ways. ignored.go lists the settings that Slipway supports.
package config

import (
	"fmt"
	"os"
	"path/filepath"
)

// Document kinds that a configuration file can contain.
const (
	masterKind = "MasterConfig"
	nodeKind   = "NodeConfig"
)

// Config is a host's effective configuration: the settings in its files, and defaults.
type Config struct {
	// DataDir is the absolute path of the data directory.
	DataDir string
	// Master configures the control plane, and Node configures the node. Load sets both.
	Master *MasterConfig
	Node   *NodeConfig
	// Scheduler configures the scheduler.
	Scheduler Scheduler

	master, node *document
	// graduated contains the feature gates that removeGraduatedGates removed, in the format that
	// Ignored returns.
	graduated []string
}

// Load reads the configuration of the host with the given data directory.
//
// If file is empty, Load reads `<dataDir>/master/master-config.yaml` and
// `<dataDir>/node/node-config.yaml`. Otherwise, it reads the YAML documents in file. If file lacks
// one of the kinds, Load reads that kind from the data directory. Load never writes files; see
// WriteDefaults. Relative paths in a file are relative to the file's directory, as in OpenShift.
//
// If the configuration is invalid, the error is of type Problems.
func Load(dataDir, file string) (*Config, error) {
	c, err := LoadAnyway(dataDir, file)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// LoadAnyway is like Load, for commands that only inspect a host. If it returns an error of type
// Problems, it also returns everything that could be decoded, with defaults applied.
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
	problems = append(problems, c.removeGraduatedGates()...)
	problems = append(append(problems, c.readScheduler()...), c.validate()...)
	if len(problems) > 0 {
		return c, problems.sorted()
	}
	return c, nil
}

// MasterFile returns the path of the MasterConfig in a data directory.
func MasterFile(dataDir string) string {
	return filepath.Join(dataDir, "master", "master-config.yaml")
}

// NodeFile returns the path of the NodeConfig in a data directory.
func NodeFile(dataDir string) string { return filepath.Join(dataDir, "node", "node-config.yaml") }

// read decodes the documents in file. It reads kinds that file lacks from the data directory.
func (c *Config) read(file string) Problems {
	c.Master, c.Node = &MasterConfig{}, &NodeConfig{}
	c.master, c.node = &document{file: MasterFile(c.DataDir)}, &document{file: NodeFile(c.DataDir)}
	seen := map[string]bool{}
	var problems Problems
	if file != "" {
		fileProblems := c.readFile(file, seen, masterKind, nodeKind)
		if len(seen) == 0 && len(fileProblems) == 0 {
			fileProblems = Problems{{File: file, Text: "is empty; write a MasterConfig or a NodeConfig"}}
		}
		problems = append(problems, fileProblems...)
	}
	for _, own := range []struct{ kind, path string }{
		{masterKind, MasterFile(c.DataDir)}, {nodeKind, NodeFile(c.DataDir)},
	} {
		if seen[own.kind] {
			continue
		}
		if _, err := os.Stat(own.path); os.IsNotExist(err) {
			continue // only defaults apply
		}
		fileProblems := c.readFile(own.path, seen, own.kind)
		if !seen[own.kind] && len(fileProblems) == 0 {
			text := "is empty; remove it, and the next start writes it with defaults"
			fileProblems = Problems{{File: own.path, Text: text}}
		}
		problems = append(problems, fileProblems...)
	}
	return problems
}

// readFile decodes each document in a file into c.Master or c.Node. It rejects documents whose kind
// is not in kinds, and adds the kind of each decoded document to seen.
func (c *Config) readFile(path string, seen map[string]bool, kinds ...string) Problems {
	roots, problems := parseFile(path)
	for _, root := range roots {
		kind, problem := kindOf(path, root, kinds)
		if problem != nil {
			problems = append(problems, *problem)
			continue
		}
		if seen[kind] {
			problems = append(problems, Problem{
				File: path, Line: root.Line, Text: "contains a second " + kind + "; keep one",
			})
			continue
		}
		seen[kind] = true
		var documentProblems Problems
		switch kind {
		case masterKind:
			c.master, documentProblems = decode(path, root, c.Master, retiredMasterKeys())
			resolve(filepath.Dir(path), c.Master.paths())
			c.Master.resolveProviders(filepath.Dir(path))
		case nodeKind:
			c.node, documentProblems = decode(path, root, c.Node, nil)
			resolve(filepath.Dir(path), c.Node.paths())
		}
		problems = append(problems, documentProblems...)
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
