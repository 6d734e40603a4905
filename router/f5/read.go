package f5

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Names of objects on the appliance.
const (
	insecurePolicy = "openshift_insecure_routes"
	securePolicy   = "openshift_secure_routes"
	dataGroup      = "ssl_passthrough_servername_dg"
	iRule          = "openshift_passthrough_irule"
)

// read returns the router's objects on the appliance. It also creates the objects that never
// change.
func (a *Appliance) read(ctx context.Context) (*inventory, error) {
	k := &inventory{}
	steps := []func() error{
		func() error { return a.ensureFolder(ctx) },
		func() error { return a.prepare(ctx, k) },
		func() error { return a.readPools(ctx, &k.pools) },
		func() error { return a.readRules(ctx, &k.policies[0], insecurePolicy) },
		func() error { return a.readRules(ctx, &k.policies[1], securePolicy) },
		func() error { return a.readFiles(ctx, &k.certificates, "sys/file/ssl-cert") },
		func() error { return a.readFiles(ctx, &k.keys, "sys/file/ssl-key") },
		func() error {
			return readProfiles(ctx, a, &k.clients, "ltm/profile/client-ssl", "/Common/clientssl", func(p clientProfile) map[string]any {
				return map[string]any{"cert": p.Cert, "key": p.Key, "chain": p.Chain, "serverName": p.ServerName}
			})
		},
		func() error {
			return readProfiles(ctx, a, &k.servers, "ltm/profile/server-ssl", "/Common/serverssl", func(p serverProfile) map[string]any {
				return map[string]any{
					"caFile": p.CAFile, "peerCertMode": p.PeerCertMode, "authenticateName": p.AuthenticateName, "serverName": p.ServerName,
				}
			})
		},
	}
	if a.config.Native() {
		steps = append(steps, func() error { return a.readTunnel(ctx, &k.records) })
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return k, nil
}

// ensureFolder creates the folders in the path of the router's partition.
func (a *Appliance) ensureFolder(ctx context.Context) error {
	path := ""
	for name := range strings.SplitSeq(strings.Trim(a.config.Partition, "/"), "/") {
		path += "/" + name
		present, err := exists(ctx, a.client, "sys/folder/"+escape(path))
		if err != nil {
			return err
		}
		if present {
			continue
		}
		if err := a.client.call(ctx, http.MethodPost, "sys/folder", map[string]any{"name": path}, nil); err != nil {
			return fmt.Errorf("create partition path %q: %w", path, err)
		}
	}
	return nil
}

// readRules reads a policy's rules.
func (a *Appliance) readRules(ctx context.Context, o *objects[rule], policy string) error {
	body := func(r rule) map[string]any { return map[string]any{"conditions": r.Conditions, "actions": r.Actions} }
	*o = objects[rule]{
		collection: "ltm/policy/" + escape(a.config.Partition+"/"+policy) + "/rules", create: body, change: body,
	}
	type item struct {
		Name                string
		ConditionsReference struct{ Items []condition }
		ActionsReference    struct{ Items []action }
	}
	return fill(ctx, a.client, o, "?expandSubcollections=true", func(i item) (string, rule, bool) {
		return i.Name, rule{i.ConditionsReference.Items, i.ActionsReference.Items}, strings.HasPrefix(i.Name, "openshift_")
	})
}

// readFiles reads the names of certificates or keys.
func (a *Appliance) readFiles(ctx context.Context, o *objects[string], collection string) error {
	*o = objects[string]{collection: collection, folder: a.config.Partition}
	return fill(ctx, a.client, o, "", func(i struct{ FullPath string }) (string, string, bool) {
		name, isOwn := own(i.FullPath, a.config.Partition)
		return name, "", isOwn
	})
}

// readProfiles reads SSL profiles, which inherit defaults from a parent.
func readProfiles[T interface{ complete() T }](ctx context.Context, a *Appliance, o *objects[T], collection, parent string, body func(T) map[string]any) error {
	*o = objects[T]{collection: collection, folder: a.config.Partition, change: body, create: func(profile T) map[string]any {
		all := body(profile)
		all["defaultsFrom"] = parent
		return all
	}}
	return fill(ctx, a.client, o, "", func(raw json.RawMessage) (string, T, bool) {
		var at struct{ FullPath string }
		var profile T
		err := errors.Join(json.Unmarshal(raw, &at), json.Unmarshal(raw, &profile))
		name, isOwn := own(at.FullPath, a.config.Partition)
		return name, profile.complete(), isOwn && err == nil
	})
}
