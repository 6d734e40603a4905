package registry

import (
	"strings"
	"testing"
)

func TestImageOfHostIsPublishedForAllProjects(t *testing.T) {
	p := newProject(t)
	const host = "localhost/slipway-tools:current"
	out := p.MustSlipway("images", "publish", host, "openshift/published:1")
	t.Cleanup(func() { p.OC("delete", "is", "published", "-n", "openshift") })
	reference, rest, _ := strings.Cut(out, "\n")
	if !strings.HasSuffix(reference, "/openshift/published:1") || !strings.HasPrefix(rest, "sha256:") {
		t.Fatalf("slipway images publish prints %q", out)
	}
	p.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: user}, spec: {containers: [
		{name: main, image: "` + reference + `", imagePullPolicy: Always, command: [sleep, infinity]}]}}`)
	p.WaitPodRunning("user")
	anybody := []string{"get", "istag", "published:1", "-n", "openshift", "-o", "name", "--as=somebody", "--as-group=system:authenticated"}
	if got := p.OC(anybody...); strings.TrimSpace(got) != "imagestreamtag.image.openshift.io/published:1" {
		t.Errorf("an authenticated user sees %q", got)
	}

	for to, want := range map[string]string{
		"published":           "must be PROJECT/STREAM:TAG",
		"openshift/Published": "must be lowercase",
		"nowhere/published":   "oc new-project nowhere",
	} {
		if result := p.Slipway("images", "publish", host, to); result.Code == 0 || !strings.Contains(result.Stderr, want) {
			t.Errorf("publish as %s: %+v, want %q", to, result, want)
		}
	}
	if result := p.Slipway("images", "publish", "localhost/nothing:1", "openshift/published:1"); result.Code == 0 || !strings.Contains(result.Stderr, "not on this host") {
		t.Errorf("publish of a missing image: %+v", result)
	}
}
