package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// owned returns a ConfigMap with one owner that exists and several owners that do not exist.
func owned(name, owner, uid string, others int) string {
	const reference = "{apiVersion: v1, kind: ConfigMap, name: %s, uid: %s}"
	references := []string{fmt.Sprintf(reference, owner, uid)}
	for i := range others {
		references = append(references, fmt.Sprintf(reference, fmt.Sprintf("%s-%d", name, i), fmt.Sprintf("%s-%d", name, i)))
	}
	return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", ownerReferences: [" + strings.Join(references, ", ") + "]}}"
}

// TestTenantCannotStopGarbageCollection creates objects with many owners that do not exist, because
// the garbage collector sends two requests for each of these owners.
func TestTenantCannotStopGarbageCollection(t *testing.T) {
	s := tenants(t)
	const objects, most = 60, 64
	own, shop := kit.CorePath(s.evil, "configmaps"), kit.CorePath(s.shop, "configmaps")
	create := func(user *kit.User, path string) (uid string) {
		var owner metav1.PartialObjectMetadata
		if err := json.Unmarshal([]byte(user.May("POST", path, "{apiVersion: v1, kind: ConfigMap, metadata: {name: owner}}")), &owner); err != nil {
			t.Fatal(err)
		}
		return string(owner.UID)
	}
	uid := create(s.mallory, own)
	s.mallory.MayNot("POST", own, owned("many", "owner", uid, most), "metadata.ownerReferences has 65 entries")
	for i := range objects {
		s.mallory.May("POST", own, owned(fmt.Sprint("o-", i), "owner", uid, most-1))
	}
	s.alice.May("POST", shop, owned("dependent", "owner", create(s.alice, shop), 0))
	s.alice.May("DELETE", shop+"/owner", "")
	s.WaitFor("garbage collection of the dependent", func(context.Context) error {
		_, err := s.alice.Try("GET", shop+"/dependent", "")
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the dependent exists"))
	})
}

// TestTenantCannotDelayScheduler creates pods whose placement is expensive. The scheduler places
// one pod at a time, and evaluates the affinity of all pending pods on each change to a pod.
func TestTenantCannotDelayScheduler(t *testing.T) {
	s := tenants(t)
	pods := kit.CorePath(s.evil, "pods")
	selector := func(number int) string {
		return "{matchExpressions: [" + strings.TrimSuffix(strings.Repeat("{key: a, operator: DoesNotExist}, ", number), ", ") + "]}"
	}
	pod := func(affinity, rest string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {generateName: costly-}, spec: {schedulingGates: [{name: example.com/never}], affinity: {" + affinity + "}, " + rest + ", containers: [{name: main, image: none}]}}"
	}
	const large, fitting = 1001, 990
	hard := func(number int) string {
		return "{requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: " + selector(number) + "}]}"
	}
	weighted := "{preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, podAffinityTerm: {topologyKey: a, labelSelector: " + selector(large) + "}}]}"
	for _, body := range []string{
		pod("podAntiAffinity: "+hard(large), "hostname: a"), pod("podAffinity: "+weighted, "hostname: a"),
		pod("", "topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, labelSelector: "+selector(large)+"}]"),
	} {
		s.mallory.MayNot("POST", pods, body, "terms, requirements and values, but the limit is 1000")
	}

	const all = 10
	costly := pod("podAntiAffinity: "+hard(fitting), "hostname: a")
	for range all {
		s.mallory.May("POST", pods, costly)
	}
	s.WaitFor("rejection of further pods", func(context.Context) error {
		response, err := s.mallory.Try("POST", pods, costly)
		if !strings.Contains(response, "the waiting pods of its owner's projects") {
			return errors.Join(err, errors.New(response))
		}
		return nil
	})
	s.mallory.May("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: plain}, spec: {containers: [{name: main, image: none}]}}")
	s.alice.May("POST", kit.CorePath(s.shop, "pods"), costly)
}

// TestTenantCannotSlowDownControllersWithSelectors creates objects with large selectors, which
// controllers evaluate on each change to a pod.
func TestTenantCannotSlowDownControllersWithSelectors(t *testing.T) {
	s := tenants(t)
	const large = 120
	selector := "{matchExpressions: [" + strings.TrimSuffix(strings.Repeat("{key: a, operator: DoesNotExist}, ", large), ", ") + "]}"
	const template = "template: {metadata: {labels: {app: web}}, spec: {containers: [{name: main, image: none}]}}"
	s.mallory.MayNot("POST", kit.GroupPath("apps", s.evil, "replicasets"),
		"{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: large}, spec: {selector: "+selector+", "+template+"}}", "spec.selector has 120")
	s.mallory.MayNot("POST", kit.GroupPath("policy", s.evil, "poddisruptionbudgets"),
		"{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: large}, spec: {selector: "+selector+"}}", "spec.selector has 120")
}
