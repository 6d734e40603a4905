package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// loadScheduler loads a configuration whose schedulerConfigFile, scheduler.json, has the given
// content. If content is empty, the file does not exist.
func loadScheduler(t *testing.T, content, settings string) (*Config, error) {
	t.Helper()
	dir := t.TempDir()
	master := "apiVersion: v1\nkind: MasterConfig\nkubernetesMasterConfig:\n  " + settings + "\n"
	for name, text := range map[string]string{"master-config.yaml": master, "scheduler.json": content} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(dir, filepath.Join(dir, "master-config.yaml"))
}

func TestSchedulerPolicyIsRead(t *testing.T) {
	const text = "{\n\t\"kind\": \"Policy\",\n\t\"apiVersion\": \"v1\",\n\t\"predicates\": [{\"name\": \"HostName\"}],\n\t\"priorities\": []\n}\n"
	for name, settings := range map[string]string{
		"configuration file": "schedulerConfigFile: scheduler.json",
		"argument":           "schedulerArguments: {policy-config-file: [scheduler.json]}",
		"abbreviation":       "schedulerArgs: {policy-config-file: [scheduler.json]}",
	} {
		t.Run(name, func(t *testing.T) {
			c, err := loadScheduler(t, text, settings)
			if name == "abbreviation" {
				if err == nil || !strings.Contains(err.Error(), "schedulerArguments") {
					t.Errorf("error %v, want the name of the key", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			policy := c.Scheduler.Policy
			if policy == nil || len(policy.Predicates) != 1 || policy.Priorities == nil || len(c.Scheduler.Arguments) > 0 {
				t.Errorf("policy %+v, arguments %v", policy, c.Scheduler.Arguments)
			}
			if ignored := c.Ignored(); len(ignored) > 0 {
				t.Errorf("ignored %v", ignored)
			}
		})
	}
}

func TestSchedulerPolicyProblemsNameLine(t *testing.T) {
	for name, tt := range map[string]struct{ content, settings, want string }{
		"unknown predicate": {
			content: "kind: Policy\nversion: v1\npredicates:\n- name: PodFitsResource\n",
			want:    `scheduler.json:4: predicates[0].name: is "PodFitsResource", which is not a known predicate; use one of CheckNodeCondition`,
		},
		"weight": {
			content: "kind: Policy\napiVersion: v1\npriorities:\n- name: EqualPriority\n  weight: 0\n",
			want:    "scheduler.json:5: priorities[0].weight: is 0, must be a number from 1 to 21474836",
		},
		"missing weight": {
			content: "kind: Policy\napiVersion: v1\npriorities:\n- name: EqualPriority\n",
			want:    "scheduler.json:4: priorities[0].weight: is 0",
		},
		"two arguments": {
			content: "kind: Policy\napiVersion: v1\npredicates:\n- name: A\n  argument: {serviceAffinity: {labels: [a]}, labelsPresence: {labels: [b]}}\n",
			want:    "scheduler.json:5: predicates[0].argument: must have one of serviceAffinity and labelsPresence",
		},
		"same name": {
			content: "kind: Policy\napiVersion: v1\npredicates:\n- name: HostName\n- name: HostName\n",
			want:    `scheduler.json:5: predicates[1].name: is "HostName", which an earlier predicate already has; choose another name`,
		},
		"misspelt key": {
			content: "kind: Policy\napiVersion: v1\npredicate: []\n",
			want:    "scheduler.json:3: predicate: unknown key; did you mean predicates?",
		},
		"mixture of YAML and JSON, as in OpenShift's guide": {
			content: "kind: \"Policy\"\nversion: \"v1\"\n\"predicates\": [\n        {\n            \"name\": \"HostName\"\n        }\n    ],\n    \"priorities\": []\n",
			want:    "scheduler.json:",
		},
		"other kind": {
			content: "kind: Pod\napiVersion: v1\n",
			want:    "scheduler.json:1: kind: must be Policy or KubeSchedulerConfiguration",
		},
		"preemption": {
			settings: "schedulerArguments: {disablePreemption: [maybe]}",
			want:     `disablePreemption: is "maybe", must be true or false`,
		},
		"two files": {
			content:  "kind: Policy\napiVersion: v1\n",
			settings: "schedulerConfigFile: scheduler.json\n  schedulerArguments: {policy-config-file: [other.json]}",
			want:     `policy-config-file: is "other.json", but schedulerConfigFile is`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			settings := tt.settings
			if settings == "" {
				settings = "schedulerConfigFile: scheduler.json"
			}
			_, err := loadScheduler(t, tt.content, settings)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %s", err, tt.want)
			}
		})
	}
}

func TestMissingSchedulerPolicyIsReported(t *testing.T) {
	c, err := loadScheduler(t, "", "schedulerConfigFile: scheduler.json")
	if err != nil {
		t.Fatal(err)
	}
	if want := "MasterConfig: kubernetesMasterConfig.schedulerConfigFile, because the file does not exist"; !slices.Contains(c.Ignored(), want) {
		t.Errorf("ignored %v, want %q", c.Ignored(), want)
	}
}

func TestChangedSchedulerPolicyFileIsReportedAsItsKey(t *testing.T) {
	before, err := loadScheduler(t, "kind: Policy\napiVersion: v1\n", "schedulerConfigFile: scheduler.json")
	if err != nil {
		t.Fatal(err)
	}
	after := *before
	after.Scheduler.DisablePreemption = true
	keys, err := Changes(before, &after)
	if err != nil || !slices.Equal(keys, []string{"kubernetesMasterConfig.schedulerConfigFile"}) {
		t.Errorf("changed keys %v, %v", keys, err)
	}
}

func TestSchedulerPolicyCanBeInConfigMap(t *testing.T) {
	const policy = "kind: Policy\napiVersion: v1\npredicates:\n- name: HostName\n"
	tests := []struct{ name, arguments, configMap, namespace, err string }{
		{"namespace by default", "policy-configmap: [scheduler-policy]", "scheduler-policy", "kube-system", ""},
		{"other namespace", "policy-configmap: [scheduler-policy], policy-configmap-namespace: [openshift-infra]", "scheduler-policy", "openshift-infra", ""},
		{"ConfigMap and file", "policy-configmap: [scheduler-policy], policy-config-file: [scheduler.json]", "", "", "keep one of them"},
		{"legacy policy file takes precedence", "policy-configmap: [x], policy-config-file: [scheduler.json], use-legacy-policy-config: ['true']", "", "kube-system", ""},
		{"invalid name", "policy-configmap: [Scheduler/Policy]", "", "", "must be the name of a ConfigMap"},
	}
	for _, tt := range tests {
		c, err := loadScheduler(t, policy, "schedulerArguments: {"+tt.arguments+"}")
		if tt.err != "" {
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: got %v, want %q", tt.name, err, tt.err)
			}
			continue
		}
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if c.Scheduler.ConfigMap != tt.configMap || c.Scheduler.ConfigMapNamespace != tt.namespace || len(c.Scheduler.Arguments) > 0 {
			t.Errorf("%s: got %+v", tt.name, c.Scheduler)
		}
	}
	if _, _, err := DecodeSchedulerPolicy("ConfigMap kube-system/x", []byte("kind: Policy\npredicates:\n- name: PodFitsResource\n")); err == nil ||
		!strings.Contains(err.Error(), "ConfigMap kube-system/x:3: predicates[0].name") {
		t.Errorf("got %v", err)
	}
}
