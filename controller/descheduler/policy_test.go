package descheduler

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/descheduler/pkg/api"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/defaultevictor"
	"sigs.k8s.io/descheduler/pkg/framework/plugins/removepodsviolatingnodeaffinity"
)

// samplePolicy is the sample from the OpenShift 3.11 guide.
const samplePolicy = `
apiVersion: "descheduler/v1alpha1"
kind: "DeschedulerPolicy"
strategies:
  "RemoveDuplicates":
     enabled: false
  "LowNodeUtilization":
     enabled: true
     params:
       nodeResourceUtilizationThresholds:
         thresholds:
           "cpu" : 20
           "memory": 20
           "pods": 20
         targetThresholds:
           "cpu" : 50
           "memory": 50
           "pods": 50
         numberOfNodes: 3
  "RemovePodsViolatingInterPodAntiAffinity":
     enabled: true
  "RemovePodsViolatingNodeAffinity":
    enabled: true
    params:
      nodeAffinityType:
      - "requiredDuringSchedulingIgnoredDuringExecution"
`

func TestOpenShiftPolicyIsTranslated(t *testing.T) {
	policy, err := parse([]byte(samplePolicy))
	if err != nil {
		t.Fatal(err)
	}
	profile := policy.Profiles[0]
	filters := []string{defaultevictor.PluginName, criticalName}
	want := api.Plugins{
		Deschedule:        api.PluginSet{Enabled: []string{nodeAffinity, antiAffinity}},
		Balance:           api.PluginSet{Enabled: []string{lowUtilization}},
		Filter:            api.PluginSet{Enabled: filters},
		PreEvictionFilter: api.PluginSet{Enabled: filters},
	}
	if diff := cmp.Diff(want, profile.Plugins); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
	args := map[string]any{}
	for _, config := range profile.PluginConfigs {
		args[config.Name] = config.Args
	}
	low, target := api.ResourceThresholds{"cpu": 20, "memory": 20, "pods": 20}, api.ResourceThresholds{"cpu": 50, "memory": 50, "pods": 50}
	if diff := cmp.Diff(&utilizationArgs{Thresholds: low, TargetThresholds: target, NumberOfNodes: 3}, args[lowUtilization]); diff != "" {
		t.Errorf("%s (-want +got):\n%s", lowUtilization, diff)
	}
	affinity := &removepodsviolatingnodeaffinity.RemovePodsViolatingNodeAffinityArgs{NodeAffinityType: []string{"requiredDuringSchedulingIgnoredDuringExecution"}}
	if diff := cmp.Diff(affinity, args[nodeAffinity]); diff != "" {
		t.Errorf("%s (-want +got):\n%s", nodeAffinity, diff)
	}
}

func TestCurrentPolicyIsParsed(t *testing.T) {
	policy, err := parse([]byte(`
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
nodeSelector: pool=batch
maxNoOfPodsToEvictTotal: 2
profiles:
- name: daily
  pluginConfig:
  - name: DefaultEvictor
    args: {nodeFit: true, minReplicas: 2}
  - name: PodLifeTime
    args: {maxPodLifeTimeSeconds: 86400}
  - name: LowNodeUtilization
    args: {thresholds: {cpu: 20}, targetThresholds: {cpu: 50}}
  plugins:
    deschedule: {enabled: [PodLifeTime]}
    balance: {enabled: [LowNodeUtilization]}
`))
	if err != nil {
		t.Fatal(err)
	}
	if *policy.NodeSelector != "pool=batch" || *policy.MaxNoOfPodsToEvictTotal != 2 || policy.Profiles[0].Name != "daily" {
		t.Errorf("got %+v", policy)
	}
	evictor := policy.Profiles[0].PluginConfigs[0].Args.(*defaultevictor.DefaultEvictorArgs)
	if !evictor.NodeFit || evictor.MinReplicas != 2 {
		t.Errorf("got %+v", evictor)
	}
	if got := policy.Profiles[0].Plugins.Filter.Enabled; !cmp.Equal(got, []string{defaultevictor.PluginName, criticalName}) {
		t.Errorf("filters %v", got)
	}
}

func TestInvalidPolicyIsRejected(t *testing.T) {
	const legacy = "apiVersion: descheduler/v1alpha1\nkind: DeschedulerPolicy\n"
	const current = "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\n"
	for name, tt := range map[string]struct{ policy, want string }{
		"other kind":       {"apiVersion: v1\nkind: Policy\n", `kind is "Policy", must be DeschedulerPolicy`},
		"other version":    {"apiVersion: descheduler/v1\nkind: DeschedulerPolicy\n", "must be descheduler/v1alpha1 or descheduler/v1alpha2"},
		"unknown strategy": {legacy + "strategies: {RemoveDuplicate: {enabled: true}}\n", `"RemoveDuplicate" is unknown; the strategies are RemovePodsViolatingNodeAffinity, RemovePodsViolatingInterPodAntiAffinity, RemoveDuplicates, LowNodeUtilization`},
		"unknown field":    {legacy + "strategies: {RemoveDuplicates: {enable: true}}\n", `unknown field "enable"`},
		"no affinity type": {legacy + "strategies: {RemovePodsViolatingNodeAffinity: {enabled: true}}\n", "nodeAffinityType needs to be set"},
		"no thresholds":    {legacy + "strategies: {LowNodeUtilization: {enabled: true}}\n", "thresholds is empty"},
		"target below threshold": {legacy + "strategies: {LowNodeUtilization: {enabled: true, params: {nodeResourceUtilizationThresholds: " +
			"{thresholds: {cpu: 50, pods: 1}, targetThresholds: {cpu: 20, memory: 3}}}}}\n",
			"cpu is 50 in thresholds and 20 in targetThresholds; both must be percentages, and the threshold must not exceed the target\n" +
				"targetThresholds has no pods, but thresholds has it\nthresholds has no memory, but targetThresholds has it"},
		"unknown plugin":   {current + "profiles: [{name: a, pluginConfig: [{name: HighNodeUtilization}]}]\n", `profile "a": plugin "HighNodeUtilization" is unknown; the plugins are DefaultEvictor, LowNodeUtilization,`},
		"unknown argument": {current + "profiles: [{name: a, pluginConfig: [{name: PodLifeTime, args: {seconds: 1}}]}]\n", `arguments of plugin "PodLifeTime": error unmarshaling JSON: while decoding JSON: json: unknown field "seconds"`},
		"metrics":          {current + "metricsProviders: [{source: KubernetesMetrics}]\n", "metricsProviders and metricsCollector are not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parse([]byte(tt.policy)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
