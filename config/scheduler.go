package config

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// Scheduler is what the configuration says about the scheduler beside flags of upstream.
type Scheduler struct {
	// Policy is the content of kubernetesMasterConfig.schedulerConfigFile if it is a Policy.
	Policy *policy.Policy
	// Configuration is the content of that file if it is a KubeSchedulerConfiguration.
	Configuration []byte
	// DisablePreemption is schedulerArguments.disablePreemption.
	DisablePreemption bool
	// Arguments are the flags in schedulerArguments that upstream's scheduler still has.
	Arguments map[string][]string
	// File is the path of the file, whether or not it exists. It is empty if the configuration names
	// none.
	File string
}

const (
	schedulerFile      = "kubernetesMasterConfig.schedulerConfigFile"
	schedulerArguments = "kubernetesMasterConfig.schedulerArguments"
)

// SchedulerKeys returns the keys that decide the content of Scheduler.
func SchedulerKeys() []string {
	return []string{schedulerFile, schedulerArguments}
}

// readScheduler reads the arguments that upstream's scheduler no longer has, and the file that they
// or schedulerConfigFile name. If there is no such file, the default policy applies, as in
// OpenShift.
func (c *Config) readScheduler() Problems {
	kube, check := &c.Master.KubernetesMasterConfig, &checker{document: c.master}
	arguments := maps.Clone(map[string][]string(kube.SchedulerArguments))
	take := func(name string) string {
		values := arguments[name]
		delete(arguments, name)
		if len(values) == 0 {
			return ""
		}
		return values[len(values)-1]
	}
	scheduler := Scheduler{File: kube.SchedulerConfigFile}
	for _, name := range []string{"policy-config-file", "config"} {
		path := take(name)
		if path == "" {
			continue
		}
		if scheduler.File != "" {
			check.fail(schedulerArguments+"."+name, "is %q, but schedulerConfigFile is %q; keep one of them", path, scheduler.File)
			continue
		}
		resolve(filepath.Dir(c.master.file), []*string{&path})
		scheduler.File = path
	}
	take("use-legacy-policy-config") // there is no other one
	switch value := take("disablePreemption"); value {
	case "true":
		scheduler.DisablePreemption = true
	case "", "false":
	default:
		check.fail(schedulerArguments+".disablePreemption", "is %q, must be true or false", value)
	}
	scheduler.Arguments = arguments
	problems := append(check.problems, scheduler.read()...)
	c.Scheduler = scheduler
	return problems
}

// read reads the file.
func (s *Scheduler) read() Problems {
	if s.File == "" {
		return nil
	}
	data, err := os.ReadFile(s.File)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return Problems{unreadable(s.File, err)}
	}
	roots, err := parse(spaces(data))
	if err != nil {
		return Problems{syntaxProblem(s.File, err)}
	}
	if len(roots) != 1 {
		return Problems{{File: s.File, Text: "must contain one document, a Policy or a KubeSchedulerConfiguration"}}
	}
	if kind := field(roots[0], "kind"); kind != nil && kind.Value == "KubeSchedulerConfiguration" {
		s.Configuration = data
		return nil
	}
	return s.readPolicy(roots[0])
}

func (s *Scheduler) readPolicy(root *yaml.Node) Problems {
	kind := field(root, "kind")
	if kind == nil || kind.Value != "Policy" {
		return Problems{{File: s.File, Line: root.Line, Key: "kind", Text: "must be Policy or KubeSchedulerConfiguration"}}
	}
	s.Policy = &policy.Policy{}
	document, problems := decode(s.File, root, s.Policy, nil)
	check := &checker{document: document}
	for _, problem := range s.Policy.Check() {
		check.fail(problem.Key, "%s", problem.Text)
	}
	return append(problems, check.problems...)
}

// missing reports whether the file that the configuration names does not exist.
func (s *Scheduler) missing() bool {
	return s.File != "" && s.Policy == nil && s.Configuration == nil
}

// spaces replaces the tabs of a JSON document, which a YAML parser rejects. A string in JSON
// contains no tab.
func spaces(data []byte) []byte {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	return data
}
