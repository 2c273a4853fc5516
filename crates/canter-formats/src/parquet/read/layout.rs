//! The structures of a Parquet file that the `parquet` crate reads, as parquet.thrift of the format's version 2.12 has them.

use super::thrift::{
    Fields,
    Kind::{self, Byte, Bytes, Double, List, Number, Structure, Truth},
};

/// A choice without more to say.
const EMPTY: Kind = Structure(&[]);

/// `PageHeader`.
pub const PAGE: &Fields = &[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Number),
    (5, Structure(DATA_PAGE)),
    (6, EMPTY),
    (7, Structure(&[(1, Number), (2, Number), (3, Truth)])),
    (8, Structure(DATA_PAGE_2)),
];

/// `DataPageHeader`.
const DATA_PAGE: &Fields = &[(1, Number), (2, Number), (3, Number), (4, Number), (5, Structure(STATISTICS))];

/// `DataPageHeaderV2`.
const DATA_PAGE_2: &Fields = &[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Truth),
    (8, Structure(STATISTICS)),
];

/// `Statistics`.
const STATISTICS: &Fields = &[
    (1, Bytes),
    (2, Bytes),
    (3, Number),
    (4, Number),
    (5, Bytes),
    (6, Bytes),
    (7, Truth),
    (8, Truth),
    (9, Number),
];

/// `FileMetaData`, at the file's end.
pub const FILE: &Fields = &[
    (1, Number),
    (2, List(&Structure(SCHEMA_ELEMENT))),
    (3, Number),
    (4, List(&Structure(ROW_GROUP))),
    (5, List(&Structure(KEY_VALUE))),
    (6, Bytes),
    (7, List(&Structure(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))),
];

/// `KeyValue`.
const KEY_VALUE: &Fields = &[(1, Bytes), (2, Bytes)];

/// `SchemaElement`.
const SCHEMA_ELEMENT: &Fields = &[
    (1, Number),
    (2, Number),
    (3, Number),
    (4, Bytes),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, Number),
    (9, Number),
    (10, Structure(LOGICAL_TYPE)),
];

/// `LogicalType`. Types without a parameter are empty structures.
const LOGICAL_TYPE: &Fields = &[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Structure(&[(1, Number), (2, Number)])),
    (6, EMPTY),
    (7, Structure(TIME)),
    (8, Structure(TIME)),
    (10, Structure(&[(1, Byte), (2, Truth)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Structure(&[(1, Byte)])),
    (17, Structure(&[(1, Bytes)])),
    (18, Structure(&[(1, Bytes), (2, Number)])),
    (19, EMPTY),
];

/// `TimeType` and `TimestampType`: in UTC or not, and the unit.
const TIME: &Fields = &[(1, Truth), (2, Structure(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))];

/// `RowGroup`.
const ROW_GROUP: &Fields = &[
    (1, List(&Structure(COLUMN_CHUNK))),
    (2, Number),
    (3, Number),
    (4, List(&Structure(&[(1, Number), (2, Truth), (3, Truth)]))),
    (5, Number),
    (6, Number),
    (7, Number),
];

/// `ColumnChunk`.
const COLUMN_CHUNK: &Fields =
    &[(1, Bytes), (2, Number), (3, Structure(COLUMN)), (4, Number), (5, Number), (6, Number), (7, Number)];

/// `ColumnMetaData`.
const COLUMN: &Fields = &[
    (1, Number),
    (2, List(&Number)),
    (3, List(&Bytes)),
    (4, Number),
    (5, Number),
    (6, Number),
    (7, Number),
    (8, List(&Structure(KEY_VALUE))),
    (9, Number),
    (10, Number),
    (11, Number),
    (12, Structure(STATISTICS)),
    (13, List(&Structure(&[(1, Number), (2, Number), (3, Number)]))),
    (14, Number),
    (15, Number),
    (16, Structure(&[(1, Number), (2, List(&Number)), (3, List(&Number))])),
    (17, Structure(&[(1, Structure(BOX)), (2, List(&Number))])),
];

/// `BoundingBox`.
const BOX: &Fields =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];
