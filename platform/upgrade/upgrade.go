// Package upgrade checks whether this program can replace a running cluster's program, and reports
// all obstacles.
package upgrade

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	utilversion "k8s.io/apimachinery/pkg/util/version"

	"github.com/slipway-platform/slipway/platform/preflight"
)

// State contains the cluster data that the checks require.
type State struct {
	// Server is the Kubernetes version of the running API server. Program is the Kubernetes version
	// of this program. An example is `v1.37.2`.
	Server, Program string
	Nodes           []corev1.Node
	// Members maps the names of etcd members to their problems. An empty string means that the member
	// has no problem.
	Members map[string]string
	// Snapshot is the time of the newest etcd snapshot. It is zero if there is no snapshot.
	Snapshot time.Time
	Now      time.Time
	Budgets  []policyv1.PodDisruptionBudget
	// Deprecated lists deprecated APIs that clients have requested.
	Deprecated []API
}

// API is an API that a later Kubernetes version removes.
type API struct {
	// Name is RESOURCE.VERSION.GROUP.
	Name string
	// Removed is the Kubernetes version that no longer serves the API, such as `1.40`.
	Removed string
}

const (
	// maxKubeletAge is the maximum difference, in minor versions, between the API server and an
	// older kubelet.
	maxKubeletAge = 3
	// maxSnapshotAge is the maximum age of the newest snapshot. An older snapshot is reported.
	maxSnapshotAge = 24 * time.Hour
)

// Check returns all obstacles to the upgrade, errors first.
func Check(s State) (problems []preflight.Problem, err error) {
	program, err := utilversion.ParseGeneric(s.Program)
	if err != nil {
		return nil, fmt.Errorf("read program version: %w", err)
	}
	server, err := utilversion.ParseGeneric(s.Server)
	if err != nil {
		return nil, fmt.Errorf("read API server version: %w", err)
	}
	problems = slices.Concat(
		checkJump(server, program), checkNodes(s.Nodes, program), checkMembers(s.Members),
		checkDeprecated(s.Deprecated, program), checkSnapshot(s.Snapshot, s.Now), checkBudgets(s.Budgets),
	)
	slices.SortStableFunc(problems, func(a, b preflight.Problem) int { return strings.Compare(string(a.Severity), string(b.Severity)) })
	return problems, nil
}

// CheckJump returns an error if a program with one Kubernetes version must not use another
// version's data. The error contains the upgrade path.
func CheckJump(data, program string) error {
	former, formerErr := utilversion.ParseGeneric(data)
	own, ownErr := utilversion.ParseGeneric(program)
	if err := errors.Join(formerErr, ownErr); err != nil {
		return fmt.Errorf("read Kubernetes version: %w", err)
	}
	if problems := checkJump(former, own); len(problems) > 0 {
		return fmt.Errorf("%s; %s", problems[0].Text, problems[0].Remedy)
	}
	return nil
}

// checkJump allows the same minor version and the next minor version, because upstream migrates
// stored objects only from one minor version to the next.
func checkJump(server, program *utilversion.Version) []preflight.Problem {
	const subject = "version"
	switch {
	case program.Major() != server.Major() || program.Minor() > server.Minor()+1:
		return []preflight.Problem{{
			Severity: preflight.Error, Subject: subject,
			Text:   fmt.Sprintf("the data was written by Kubernetes %s, and this program contains %s: an upgrade cannot skip minor versions", server, program),
			Remedy: fmt.Sprintf("first upgrade to a Slipway version that contains Kubernetes %d.%d", server.Major(), server.Minor()+1),
		}}
	case program.Minor() < server.Minor():
		return []preflight.Problem{{
			Severity: preflight.Error, Subject: subject,
			Text:   fmt.Sprintf("the data was written by Kubernetes %s, and this program contains the older %s", server, program),
			Remedy: "to go back, restore a snapshot or a backup that this version of Slipway saved",
		}}
	}
	return nil
}

// checkNodes reports nodes that are not ready or whose kubelet is too old for the API server.
func checkNodes(nodes []corev1.Node, program *utilversion.Version) (problems []preflight.Problem) {
	for _, node := range nodes {
		subject := "node " + node.Name
		kubelet, err := utilversion.ParseGeneric(node.Status.NodeInfo.KubeletVersion)
		if err == nil && kubelet.Minor()+maxKubeletAge < program.Minor() {
			problems = append(problems, preflight.Problem{
				Severity: preflight.Error, Subject: subject,
				Text:   fmt.Sprintf("its kubelet has version %s, more than %d minor versions before %s", kubelet, maxKubeletAge, program),
				Remedy: "upgrade this host first",
			})
		}
		isReady := func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}
		if !slices.ContainsFunc(node.Status.Conditions, isReady) {
			problems = append(problems, preflight.Problem{
				Severity: preflight.Error, Subject: subject, Text: "it is not ready",
				Remedy: "oc describe node " + node.Name + "   # or: oc delete node " + node.Name,
			})
		}
	}
	return problems
}

func checkMembers(members map[string]string) (problems []preflight.Problem) {
	for name, text := range members {
		if text == "" {
			continue
		}
		problems = append(problems, preflight.Problem{
			Severity: preflight.Error, Subject: "etcd member " + name, Text: text, Remedy: "slipway etcd health",
		})
	}
	slices.SortFunc(problems, func(a, b preflight.Problem) int { return strings.Compare(a.Subject, b.Subject) })
	return problems
}

// checkDeprecated reports APIs that are in use but that this program does not serve.
func checkDeprecated(apis []API, program *utilversion.Version) (problems []preflight.Problem) {
	for _, api := range apis {
		removed, err := utilversion.ParseGeneric(api.Removed)
		if err != nil || program.LessThan(removed) {
			continue
		}
		problems = append(problems, preflight.Problem{
			Severity: preflight.Error, Subject: "API " + api.Name,
			Text:   "clients use it, and Kubernetes " + api.Removed + " does not serve it",
			Remedy: "find the clients in the audit log, and change them to the current version of the API",
		})
	}
	return problems
}

func checkSnapshot(newest, now time.Time) []preflight.Problem {
	text := fmt.Sprintf("the newest etcd snapshot is %s old", now.Sub(newest).Round(time.Minute))
	if newest.IsZero() {
		text = "no etcd snapshot exists"
	} else if now.Sub(newest) < maxSnapshotAge {
		return nil
	}
	return []preflight.Problem{{
		Severity: preflight.Warning, Subject: "backup", Text: text + "; a return to the previous version loses all later changes",
		Remedy: "slipway backup /backup",
	}}
}

// checkBudgets reports budgets that prevent pods from being evicted while their host is upgraded.
func checkBudgets(budgets []policyv1.PodDisruptionBudget) (problems []preflight.Problem) {
	for _, budget := range budgets {
		if budget.Status.ExpectedPods == 0 || budget.Status.DisruptionsAllowed > 0 {
			continue
		}
		problems = append(problems, preflight.Problem{
			Severity: preflight.Warning, Subject: "budget " + budget.Namespace + "/" + budget.Name,
			Text:   "it permits no disruption, so `oc adm drain` waits for its pods",
			Remedy: "scale the application up, or upgrade without a drain: pods continue to run",
		})
	}
	return problems
}
