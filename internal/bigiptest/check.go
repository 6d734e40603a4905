package bigiptest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// check validates an object that a request creates or changes. It returns nil if the object is
// valid.
func (a *Appliance) check(o *object) *rejection {
	switch pattern := a.pattern(o); pattern {
	case "ltm/pool/*/members":
		return a.checkMember(o)
	case "ltm/policy/*/rules", "ltm/policy/*/rules/*/conditions", "ltm/policy/*/rules/*/actions":
		return a.checkRule(o)
	case "ltm/virtual/*/policies":
		if a.objects["ltm/policy/"+escape(o.fullPath)] == nil {
			return missing("policy", o.fullPath)
		}
	case "ltm/virtual/*/profiles":
		return a.checkProfile(o)
	case "ltm/virtual":
		for _, rule := range o.texts("rules") {
			if a.objects["ltm/rule/"+escape(rule)] == nil {
				return missing("rule", rule)
			}
		}
	case "ltm/profile/client-ssl", "ltm/profile/server-ssl":
		return a.checkFiles(o)
	case "sys/file/ssl-cert", "sys/file/ssl-key":
		return a.checkContent(o)
	case "net/tunnels/vxlan", "net/tunnels/tunnel", "net/self", "net/fdb/tunnel/*/records":
		return a.checkNetwork(pattern, o)
	}
	return nil
}

// pattern returns the path of the collection that contains an object. "*" in the path stands for an
// object.
func (a *Appliance) pattern(o *object) string {
	k, _, _ := a.find(o.collection)
	return k.path
}

func missing(kind, name string) *rejection {
	return refuse(http.StatusNotFound, "01020036:3: The requested %s (%s) was not found.", kind, name)
}

// checkMember checks a pool member, and creates its node.
func (a *Appliance) checkMember(o *object) *rejection {
	address, err := netip.ParseAddr(o.text("address"))
	separator := ":"
	if address.Is6() {
		separator = "."
	}
	if err != nil || !strings.Contains(o.fullPath, "/"+address.String()+separator) {
		return refuse(http.StatusBadRequest, "01070734:3: %s is not a valid member", o.fullPath)
	}
	node := o.fullPath[:strings.LastIndex(o.fullPath, separator)]
	if a.objects["ltm/node/"+escape(node)] == nil {
		a.put("ltm/node", node, map[string]any{"address": address.String()})
	}
	return nil
}

// checkRule checks a part of a policy.
func (a *Appliance) checkRule(o *object) *rejection {
	parts := strings.Split(o.collection, "/")
	policy := a.objects[strings.Join(parts[:3], "/")]
	if major, minor := a.version(); (major > 12 || major == 12 && minor >= 1) && !policy.on("legacy") {
		return refuse(http.StatusBadRequest, "01071726:3: Cannot modify published policy (%s), create a draft.", policy.fullPath)
	}
	switch {
	case strings.HasSuffix(o.collection, "/actions") && o.on("forward"):
		if pool := o.text("pool"); a.objects["ltm/pool/"+escape(pool)] == nil {
			return missing("pool", pool)
		}
	case strings.HasSuffix(o.collection, "/actions") && o.on("serverSsl"):
		if !slices.Contains(policy.texts("controls"), "server-ssl") {
			return refuse(http.StatusBadRequest, "010716de:3: The policy %s does not control server-ssl.", policy.fullPath)
		}
	case strings.HasSuffix(o.collection, "/conditions") && len(o.texts("values")) == 0:
		return refuse(http.StatusBadRequest, "010716d9:3: A condition of %s has no values.", policy.fullPath)
	}
	return nil
}

// checkProfile checks an attached profile. The client profiles of a virtual server must have
// different names.
func (a *Appliance) checkProfile(o *object) *rejection {
	var profile *object
	for _, kind := range []string{"client-ssl", "server-ssl"} {
		if existing := a.objects["ltm/profile/"+kind+"/"+escape(o.fullPath)]; existing != nil {
			profile = existing
		}
	}
	if profile == nil {
		return missing("profile", o.fullPath)
	}
	for _, other := range a.list(o.collection) {
		present := a.objects[profile.collection+"/"+escape(other.fullPath)]
		if present != nil && present != profile && present.text("serverName") == profile.text("serverName") {
			return refuse(http.StatusBadRequest, "01070734:3: %s and %s have the same server name.", o.fullPath, other.fullPath)
		}
	}
	return nil
}

// checkFiles checks a profile's files.
func (a *Appliance) checkFiles(o *object) *rejection {
	for name, collection := range map[string]string{"cert": "ssl-cert", "chain": "ssl-cert", "caFile": "ssl-cert", "key": "ssl-key"} {
		file := o.text(name)
		if file != "" && file != "none" && a.objects["sys/file/"+collection+"/"+escape(file)] == nil {
			return missing("file", file)
		}
	}
	return nil
}

// checkContent reads an uploaded file.
func (a *Appliance) checkContent(o *object) *rejection {
	content, ok := a.files[strings.TrimPrefix(o.text("sourcePath"), "file:")]
	if !ok {
		return refuse(http.StatusBadRequest, "Failed! exit_code (37) for %s.", o.text("sourcePath"))
	}
	block, _ := pem.Decode(bytes.TrimSpace(content))
	valid := block != nil
	if valid && o.collection == "sys/file/ssl-cert" {
		_, err := x509.ParseCertificate(block.Bytes)
		valid = err == nil
	}
	if valid && o.collection == "sys/file/ssl-key" {
		_, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		valid = err == nil
	}
	if !valid {
		return refuse(http.StatusBadRequest, "01070712:3: %s is not valid PEM.", o.fullPath)
	}
	o.attributes["content"] = string(content)
	return nil
}

// userOf returns the path of an object that uses the given object, or "" if there is none.
func (a *Appliance) userOf(used *object) string {
	refers := map[string][]string{
		"ltm/pool": {"pool"}, "sys/file/ssl-cert": {"cert", "chain", "caFile"}, "sys/file/ssl-key": {"key"},
		"net/tunnels/tunnel": {"vlan"}, "net/tunnels/vxlan": {"profile"},
	}
	for _, o := range a.objects {
		for _, name := range refers[used.collection] {
			if o.text(name) == used.fullPath {
				return o.path()
			}
		}
		isAttachment := strings.HasPrefix(o.collection, "ltm/virtual/") && o.fullPath == used.fullPath
		if isAttachment && (strings.HasPrefix(used.collection, "ltm/profile/") || used.collection == "ltm/policy") {
			return o.path()
		}
		isMember := strings.HasSuffix(o.collection, "/members") && o.text("address") == used.text("address")
		if isMember && used.collection == "ltm/node" {
			return o.path()
		}
	}
	return ""
}
