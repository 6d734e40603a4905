package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// catalog is a broker's catalog of services.
type catalog struct {
	Services []service `json:"services"`
}

type service struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Bindable    *bool  `json:"bindable"`
	Instances   bool   `json:"instances_retrievable"`
	Bindings    bool   `json:"bindings_retrievable"`
	Updateable  bool   `json:"plan_updateable"`
	Plans       []plan `json:"plans"`
}

type plan struct {
	ID          string                    `json:"id"`
	Name        string                    `json:"name"`
	Description string                    `json:"description"`
	Bindable    *bool                     `json:"bindable"`
	Updateable  *bool                     `json:"plan_updateable"`
	Schemas     map[string]map[string]any `json:"schemas"`
	Maintenance *struct {
		Version string `json:"version"`
	} `json:"maintenance_info"`
}

// readCatalog requests the catalog.
func (c *checker) readCatalog(ctx context.Context) error {
	got, err := c.send(ctx, http.MethodGet, "/v2/catalog", nil, nil)
	if err != nil {
		return fmt.Errorf("request catalog: %w", err)
	}
	c.expect("GET /v2/catalog returns 200", got, http.StatusOK)
	text, err := json.Marshal(got.body)
	if err == nil {
		err = json.Unmarshal(text, &c.catalog)
	}
	if err != nil {
		return fmt.Errorf("decode catalog: %w", err)
	}
	if got.code != http.StatusOK || len(c.catalog.Services) == 0 {
		return fmt.Errorf("read catalog: status %d with %d services: %s", got.code, len(c.catalog.Services), got.description())
	}
	return nil
}

// checkCatalog checks the catalog's fields.
func (c *checker) checkCatalog() {
	var missing, duplicate, schemas []string
	services, ids, names := map[string]bool{}, map[string]bool{}, map[string]bool{}
	unique := func(kind, value string, seen map[string]bool) {
		if seen[value] {
			duplicate = append(duplicate, fmt.Sprintf("%s %q is not unique", kind, value))
		}
		seen[value] = true
	}
	need := func(object, field string, ok bool) {
		if !ok {
			missing = append(missing, fmt.Sprintf("%s has no %s", object, field))
		}
	}
	for _, s := range c.catalog.Services {
		object := fmt.Sprintf("service %q", s.Name)
		need(object, "id", s.ID != "")
		need(object, "name", s.Name != "")
		need(object, "description", s.Description != "")
		need(object, "bindable", s.Bindable != nil)
		need(object, "plans", len(s.Plans) > 0)
		unique("the ID of a service", s.ID, services)
		unique("the name of a service", s.Name, names)
		plans := map[string]bool{}
		for _, p := range s.Plans {
			object := fmt.Sprintf("plan %q of service %q", p.Name, s.Name)
			need(object, "id", p.ID != "")
			need(object, "name", p.Name != "")
			need(object, "description", p.Description != "")
			need(object, "maintenance_info.version", p.Maintenance == nil || p.Maintenance.Version != "")
			unique("the ID of a plan", p.ID, ids)
			unique("the name of a plan of service "+s.Name, p.Name, plans)
			schemas = append(schemas, schemaProblems(object, p.Schemas)...)
		}
	}
	c.rule("Services and plans have all required fields", missing...)
	c.rule("IDs are unique among services and among plans, and names among services and among the plans of a service", duplicate...)
	c.rule("Schemas are JSON Schema objects with a $schema and without references to other documents", schemas...)
}

// schemaProblems returns the problems in a plan's schemas.
func schemaProblems(object string, schemas map[string]map[string]any) (problems []string) {
	for _, actions := range schemas {
		for action, value := range actions {
			holder, _ := value.(map[string]any)
			schema, ok := holder["parameters"].(map[string]any)
			if holder != nil && holder["parameters"] == nil {
				continue
			}
			version, _ := schema["$schema"].(string)
			if !ok || version == "" {
				problems = append(problems, fmt.Sprintf("the schema %s of %s has no $schema", action, object))
			}
			if text, _ := json.Marshal(schema); strings.Contains(string(text), `"$ref":"http`) {
				problems = append(problems, fmt.Sprintf("the schema %s of %s refers to another document", action, object))
			}
		}
	}
	return problems
}

// find returns a service and one of its plans. If planName is empty, it returns the first plan.
func (c *checker) find(name, planName string) (service, plan, error) {
	for _, s := range c.catalog.Services {
		if s.Name != name {
			continue
		}
		for _, p := range s.Plans {
			if planName == "" || p.Name == planName {
				return s, p, nil
			}
		}
	}
	return service{}, plan{}, fmt.Errorf("find service %q with plan %q: the catalog has neither", name, planName)
}

// bindable reports whether instances of a plan can be bound.
func (s service) bindable(p plan) bool {
	if p.Bindable != nil {
		return *p.Bindable
	}
	return s.Bindable != nil && *s.Bindable
}

// updateable reports whether instances with plan p can change to another plan.
func (s service) updateable(p plan) bool {
	if p.Updateable != nil {
		return *p.Updateable
	}
	return s.Updateable
}

// other returns a different plan that instances with plan p can change to. If there is no such
// plan, it returns p.
func (s service) other(p plan) plan {
	for _, candidate := range s.Plans {
		if candidate.ID != p.ID {
			return candidate
		}
	}
	return p
}
