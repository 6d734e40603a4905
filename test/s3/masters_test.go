package s3

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// waitRegistry waits until the registry's address belongs to a master other than former. It returns
// that master's name.
func waitRegistry(c *kit.Cluster, masters map[string]*kit.Cluster, former string) (name string) {
	c.WaitFor("registry on a master other than "+former, func(ctx context.Context) error {
		slices, err := c.Client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=docker-registry"})
		if err != nil {
			return err
		}
		name = ""
		for _, slice := range slices.Items {
			for _, endpoint := range slice.Endpoints {
				for master, host := range masters {
					if endpoint.Addresses[0] == host.Address.String() {
						name = master
					}
				}
			}
		}
		if name == "" || name == former {
			return fmt.Errorf("the registry is on %q", name)
		}
		return nil
	})
	return name
}

// TestRegistryMovesToAnotherMaster kills the master that runs the registry. Another master must
// then serve the images in S3 and accept new images.
func TestRegistryMovesToAnotherMaster(t *testing.T) {
	program, version := kit.OtherVersion(t)
	r := startWith(t, kit.Options{Segment: true, Node: "nodeName: first"})
	masters := map[string]*kit.Cluster{"first": r.Cluster}
	for _, name := range []string{"second", "third"} {
		masters[name] = r.JoinMaster(name, kit.Options{})
	}
	r.WaitFor("three voters", func(context.Context) error {
		result := r.Slipway("etcd", "members")
		if strings.Count(result.Stdout, " voter ") != 3 {
			return errors.New(result.Stdout + result.Stderr)
		}
		return nil
	})
	t.Run("HostsAreUpgraded", func(t *testing.T) { r.checkRollingUpgrade(t, masters, program, version) })
	t.Run("HostsAreRestarted", func(t *testing.T) { checkRollingRestart(t, masters) })
	former := waitRegistry(r.Cluster, masters, "")
	r.Cluster = masters[former]
	r.push("app:v1")

	masters[former].KillEverything()
	for name, host := range masters {
		if name != former {
			r.Cluster = host.For(t)
		}
	}
	current := waitRegistry(r.Cluster, masters, former)
	r.Cluster = masters[current].For(t)
	r.WaitFor("image of the former master", func(context.Context) error { return r.checkContent(r.tag("app:v1")) })
	r.push("app:v2")

	for name, master := range masters {
		if name == former {
			continue
		}
		master.For(t).WaitFor("publication through master "+name, func(context.Context) error {
			if result := master.Slipway("images", "publish", kit.ToolsImage, "default/published:"+name); result.Code != 0 {
				return errors.New(result.Stderr)
			}
			return nil
		})
	}

	masters[former].For(t).Up()
	if err := r.checkContent(r.tag("app:v2")); err != nil {
		t.Errorf("the image that another master received: %v", err)
	}
}
