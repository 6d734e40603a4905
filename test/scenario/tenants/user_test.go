package tenants

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestHundredUsersSeeOnlyOwnProjects(t *testing.T) {
	const users, together = 100, 10
	c := tenants(t)
	people := make([]*kit.User, users)
	for i := range people {
		people[i] = c.User(fmt.Sprintf("tenant%02d@example.com", i))
	}
	each := func(do func(i int) error) {
		t.Helper()
		numbers, failures := make(chan int), make(chan error, users)
		var group sync.WaitGroup
		for range together {
			group.Go(func() {
				for i := range numbers {
					if err := do(i); err != nil {
						failures <- fmt.Errorf("%s: %w", people[i].Name, err)
					}
				}
			})
		}
		for i := range people {
			numbers <- i
		}
		close(numbers)
		group.Wait()
		close(failures)
		for err := range failures {
			t.Error(err)
		}
	}
	name := func(i int) string { return fmt.Sprintf("tenant-%02d", i%users) }
	each(func(i int) error {
		if response, err := people[i].Try("POST", requests, request(name(i))); err != nil {
			return fmt.Errorf("request: %w: %s", err, response)
		}
		response, err := people[i].Try("POST", kit.CorePath(name(i), "configmaps"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: own}}")
		if err != nil {
			return fmt.Errorf("create: %w: %s", err, response)
		}
		return nil
	})
	each(func(i int) error {
		response, err := people[i].Try("GET", "/apis/project.openshift.io/v1/projects", "")
		var list struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err != nil || json.Unmarshal([]byte(response), &list) != nil || len(list.Items) != 1 || list.Items[0].Metadata.Name != name(i) {
			return fmt.Errorf("sees %d projects, %v", len(list.Items), err)
		}
		if _, err := people[i].Try("GET", kit.CorePath(name(i), "configmaps/own"), ""); err != nil {
			return fmt.Errorf("in the user's own project: %w", err)
		}
		for _, path := range []string{
			kit.CorePath(name(i+1), "configmaps/own"), kit.CorePath(name(i+1), "secrets"), "/apis/project.openshift.io/v1/projects/" + name(i+1), "/api/v1/namespaces", "/api/v1/pods",
		} {
			if response, err := people[i].Try("GET", path, ""); !apierrors.IsForbidden(err) {
				return fmt.Errorf("%s: %w: %s", path, err, response)
			}
		}
		if response, err := people[i].Try("POST", requests, request(name(i)+"-more")); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a second project: %w: %s", err, response)
		}
		return nil
	})
}
