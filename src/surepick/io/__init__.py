"""Files of users: tables, items and recorded votes."""
