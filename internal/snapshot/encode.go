package snapshot

import "errors"

// Encode is m in bytes.
func (m *Metadata) Encode() []byte { return nil }

// Decode reads what Encode wrote.
func Decode(b []byte) (*Metadata, error) { return nil, errors.ErrUnsupported }
