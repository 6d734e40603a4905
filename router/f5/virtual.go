package f5

import (
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// passthroughRule is the iRule for the HTTPS virtual server. DATAGROUP is a placeholder for the
// data group's path.
//
//go:embed passthrough.tcl
var passthroughRule string

// virtual is a virtual server in REST API format.
type virtual struct {
	SelfLink          string
	Rules             []string
	PoliciesReference struct{ Items []struct{ FullPath string } }
	ProfilesReference struct{ Items []attachment }
}

// attachment is a profile that is attached to a virtual server. Its context is clientside,
// serverside or all.
type attachment struct{ FullPath, Context string }

// version returns the appliance's version, which it reads from an object's self link.
func (v *virtual) version() (major, minor int) {
	_, text, _ := strings.Cut(v.SelfLink, "ver=")
	first, rest, _ := strings.Cut(text, ".")
	second, _, _ := strings.Cut(rest, ".")
	major, _ = strconv.Atoi(first)
	minor, _ = strconv.Atoi(second)
	return major, minor
}

func (a *Appliance) readVirtual(ctx context.Context, path string) (*virtual, error) {
	v := &virtual{}
	err := a.client.get(ctx, "ltm/virtual/"+escape(path)+"?expandSubcollections=true", v)
	if is(err, http.StatusNotFound) {
		return nil, fmt.Errorf("the appliance has no virtual server %q; create it, or name another one with %[2]sHTTP_VSERVER and %[2]sHTTPS_VSERVER", path, prefix)
	}
	return v, err
}

// prepare creates the policies, the data group and the iRule, and attaches them to the virtual
// servers, which must exist. It reads the data group and the HTTPS virtual server's profiles.
func (a *Appliance) prepare(ctx context.Context, k *inventory) error {
	for _, one := range []struct {
		server, policy string
		controls       []string
	}{
		{a.config.HTTP, insecurePolicy, []string{"forwarding"}},
		{a.config.HTTPS, securePolicy, []string{"forwarding", "server-ssl"}},
	} {
		v, err := a.readVirtual(ctx, one.server)
		if err != nil {
			return err
		}
		if err := a.checkVersion(v); err != nil {
			return err
		}
		if err := a.ensurePolicy(ctx, v, one.server, one.policy, one.controls); err != nil {
			return err
		}
		if one.policy != securePolicy {
			continue
		}
		a.readAttachments(k, v)
		if err := a.ensurePassthrough(ctx, v, k); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion returns an error if the appliance's version does not support the configuration.
func (a *Appliance) checkVersion(v *virtual) error {
	major, minor := v.version()
	switch {
	case major == 0: // the version is unknown
	case major < 11 || major == 11 && minor < 4:
		return fmt.Errorf("the appliance has version %d.%d: the router needs 11.4 or newer", major, minor)
	case major < 12 && a.config.Native():
		return fmt.Errorf("the appliance has version %d.%d: native integration needs 12.0 or newer; set up a ramp node, and unset %[3]sINTERNAL_ADDRESS and %[3]sVXLAN_GW_CIDR", major, minor, prefix)
	}
	return nil
}

// ensurePolicy creates a policy and attaches it to its virtual server.
func (a *Appliance) ensurePolicy(ctx context.Context, v *virtual, server, policy string, controls []string) error {
	body := map[string]any{"controls": controls, "requires": []string{"http"}, "strategy": "best-match"}
	if major, minor := v.version(); major > 12 || major == 12 && minor >= 1 {
		body["legacy"] = true // allow changes to the policy's rules without a draft
	}
	if err := ensureObject(ctx, a.client, "ltm/policy", a.config.Partition, policy, body); err != nil {
		return err
	}
	full := a.config.Partition + "/" + policy
	for _, present := range v.PoliciesReference.Items {
		if present.FullPath == full {
			return nil
		}
	}
	err := a.client.call(ctx, http.MethodPost, "ltm/virtual/"+escape(server)+"/policies", map[string]any{"name": full}, nil)
	if err != nil {
		return fmt.Errorf("attach policy to virtual server %q: %w; the virtual server needs the profile http", server, err)
	}
	return nil
}

// ensurePassthrough creates the data group and the iRule that serve passthrough routes.
func (a *Appliance) ensurePassthrough(ctx context.Context, v *virtual, k *inventory) error {
	group := a.config.Partition + "/" + dataGroup
	if err := ensureObject(ctx, a.client, "ltm/data-group/internal", a.config.Partition, dataGroup, map[string]any{"type": "string"}); err != nil {
		return err
	}
	var stored struct {
		Records []struct{ Name, Data string }
	}
	if err := a.client.get(ctx, "ltm/data-group/internal/"+escape(group), &stored); err != nil {
		return err
	}
	k.passthrough = map[string]string{}
	for _, record := range stored.Records {
		k.passthrough[record.Name] = record.Data
	}

	text := strings.ReplaceAll(passthroughRule, "DATAGROUP", group)
	if err := ensureObject(ctx, a.client, "ltm/rule", a.config.Partition, iRule, map[string]any{"apiAnonymous": text}); err != nil {
		return err
	}
	full := a.config.Partition + "/" + iRule
	var present struct{ APIAnonymous string }
	if err := a.client.get(ctx, "ltm/rule/"+escape(full), &present); err != nil {
		return err
	}
	// The existing rule can be from another version of Slipway.
	if strings.TrimSpace(present.APIAnonymous) != strings.TrimSpace(text) {
		if err := a.client.call(ctx, http.MethodPatch, "ltm/rule/"+escape(full), map[string]any{"apiAnonymous": text}, nil); err != nil {
			return err
		}
	}
	if slices.Contains(v.Rules, full) {
		return nil
	}
	return a.client.call(ctx, http.MethodPatch, "ltm/virtual/"+escape(a.config.HTTPS), map[string]any{"rules": append(v.Rules, full)}, nil)
}

// readAttachments reads which of the router's profiles are attached to the HTTPS virtual server.
func (a *Appliance) readAttachments(k *inventory, v *virtual) {
	for side, o := range map[string]*objects[string]{"clientside": &k.attachedClients, "serverside": &k.attachedServers} {
		*o = objects[string]{
			collection: "ltm/virtual/" + escape(a.config.HTTPS) + "/profiles", actual: map[string]string{},
			create: func(context string) map[string]any { return map[string]any{"context": context} },
		}
		for _, profile := range v.ProfilesReference.Items {
			if _, isOwn := own(profile.FullPath, a.config.Partition); isOwn && profile.Context == side {
				o.actual[profile.FullPath] = side
			}
		}
	}
}
