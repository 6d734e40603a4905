package registryname

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNames(t *testing.T) {
	type names struct {
		Stream, Public     string
		Aliases, All, Host []string
	}
	const service = "docker-registry.default.svc:5000"
	for name, tt := range map[string]struct {
		names Names
		want  names
	}{
		"defaults": {
			Names{RouteDomain: "apps.example.com", ClusterDomain: "cluster.local"},
			names{
				service, "docker-registry-default.apps.example.com",
				[]string{"docker-registry-default.apps.example.com"},
				[]string{"docker-registry-default.apps.example.com", service},
				[]string{"docker-registry-default.apps.example.com"},
			},
		},
		"route in the domain of the cluster": {
			Names{RouteDomain: "router.default.svc.cluster.local", ClusterDomain: "cluster.local"},
			names{
				service, "",
				[]string{"docker-registry-default.router.default.svc.cluster.local"},
				[]string{"docker-registry-default.router.default.svc.cluster.local", service},
				[]string{"docker-registry-default.router.default.svc.cluster.local"},
			},
		},
		"configured names": {
			Names{Internal: "registry.lan:5000", External: "registry.example.com", RouteDomain: "svc.cluster.local", ClusterDomain: "cluster.local"},
			names{
				"registry.lan:5000", "registry.example.com",
				[]string{"registry.lan:5000", "registry.example.com", "docker-registry-default.svc.cluster.local"},
				[]string{"registry.lan:5000", "registry.example.com", "docker-registry-default.svc.cluster.local", service},
				[]string{"registry.lan", "registry.example.com", "docker-registry-default.svc.cluster.local"},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := tt.names
			got := names{n.Stream(), n.Public(), n.Aliases(), n.All(), n.Hosts()}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceHosts(t *testing.T) {
	want := []string{"docker-registry.default.svc", "docker-registry.default.svc.cluster.local", "docker-registry", "docker-registry.default"}
	if diff := cmp.Diff(want, ServiceHosts("cluster.local")); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}
