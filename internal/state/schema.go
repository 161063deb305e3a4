package state

import (
	"github.com/weirstream/weir/internal/fit"
	"github.com/weirstream/weir/internal/snapshot"
)

// SchemaError refuses a restore: a state is stored as something that cannot become what is declared now. Package fit has the rules, so
// that what is refused here is refused before anything runs.
type SchemaError = fit.StateError

// suitKeys refuses keys that cannot become the declared ones.
func suitKeys(stored, declared string) error {
	_, err := fit.Keys(stored, declared)
	return err
}

// migrate makes a declared state read what is stored, or refuses.
func migrate(stored snapshot.StateSchema, declared interface {
	schema() snapshot.StateSchema
	readAs(stored snapshot.StateSchema) error
}) error {
	if _, err := fit.State(stored, declared.schema()); err != nil {
		return err
	}
	return declared.readAs(stored)
}
