package config

import (
	"bytes"
	"cmp"
	"maps"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/kube/scheduler/policy"
)

// Scheduler contains the scheduler's settings, in addition to the upstream flags.
type Scheduler struct {
	// Policy is the content of kubernetesMasterConfig.schedulerConfigFile, if the file is a Policy.
	Policy *policy.Policy
	// Configuration is the content of kubernetesMasterConfig.schedulerConfigFile, if the file is a
	// KubeSchedulerConfiguration.
	Configuration []byte
	// DisablePreemption is schedulerArguments.disablePreemption.
	DisablePreemption bool
	// Arguments contains the flags in schedulerArguments that still exist in the upstream
	// scheduler.
	Arguments map[string][]string
	// ConfigMap is the name of the ConfigMap that contains the policy
	// (schedulerArguments.policy-configmap), in the namespace ConfigMapNamespace. It is "" if no
	// ConfigMap is configured. The ConfigMap takes precedence over File.
	ConfigMap, ConfigMapNamespace string
	// File is the path of the scheduler's configuration file, whether or not the file exists. It is
	// empty if no file is configured.
	File string
}

const (
	schedulerFile      = "kubernetesMasterConfig.schedulerConfigFile"
	schedulerArguments = "kubernetesMasterConfig.schedulerArguments"
)

// SchedulerKeys returns the keys that determine the content of the Scheduler struct.
func SchedulerKeys() []string {
	return []string{schedulerFile, schedulerArguments}
}

// readScheduler reads the arguments that no longer exist in the upstream scheduler, and the file
// that these arguments or schedulerConfigFile specify. If the file does not exist, the default
// policy applies, as in OpenShift.
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
	scheduler.ConfigMap, scheduler.ConfigMapNamespace = take("policy-configmap"), cmp.Or(take("policy-configmap-namespace"), metav1.NamespaceSystem)
	// As in OpenShift 3, if this argument is true, the file takes precedence over the ConfigMap.
	legacy := take("use-legacy-policy-config")
	switch {
	case scheduler.ConfigMap == "":
	case scheduler.File != "" && legacy == "true":
		scheduler.ConfigMap = ""
	case scheduler.File != "":
		check.fail(schedulerArguments+".policy-configmap", "is %q, but the policy is also in the file %q; keep one of them", scheduler.ConfigMap, scheduler.File)
	default:
		for _, text := range []string{scheduler.ConfigMap, scheduler.ConfigMapNamespace} {
			if len(validation.IsDNS1123Subdomain(text)) > 0 {
				check.fail(schedulerArguments+".policy-configmap", "is %q, must be the name of a ConfigMap", text)
			}
		}
	}
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

// read reads and decodes the scheduler's configuration file, if one is configured.
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
	return s.decode(data)
}

// DecodeSchedulerPolicy decodes a Policy or a KubeSchedulerConfiguration. name identifies the
// source in errors.
func DecodeSchedulerPolicy(name string, data []byte) (*policy.Policy, []byte, error) {
	s := Scheduler{File: name}
	if problems := s.decode(data); len(problems) > 0 {
		return nil, nil, problems.sorted()
	}
	return s.Policy, s.Configuration, nil
}

// decode decodes the content of the scheduler's configuration file.
func (s *Scheduler) decode(data []byte) Problems {
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

// missing reports whether the configuration specifies a file that does not exist.
func (s *Scheduler) missing() bool {
	return s.File != "" && s.Policy == nil && s.Configuration == nil
}

// spaces replaces the tabs in a JSON document with spaces, because the YAML parser rejects tabs. A
// JSON string cannot contain a literal tab.
func spaces(data []byte) []byte {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return bytes.ReplaceAll(data, []byte("\t"), []byte(" "))
	}
	return data
}
